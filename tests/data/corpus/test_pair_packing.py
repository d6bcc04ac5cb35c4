"""Rows of two segments: text of a document and what follows it, as a second writing makes them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pair_cases import IDS, expected_rows

from keras_tupe.data.corpus.pair_packing import pack_pairs

FIVE_SIGMA = 5


@st.composite
def corpora(draw):
    """Documents of sentences of 0 to 16 tokens, every token with an id of its own; a length."""
    shape = st.lists(st.lists(st.integers(0, 16), max_size=9), max_size=5)
    next_id = iter(range(10, 10_000))
    documents = [
        [[next(next_id) for _ in range(size)] for size in document] for document in draw(shape)
    ]
    return documents, draw(st.integers(5, 21))


@settings(max_examples=200, deadline=None)
@given(corpora())
def test_rows_are_those_of_a_second_writing_token_by_token(corpus):
    documents, length = corpus
    packed = pack_pairs(documents, length, **IDS)
    found = [expected_rows(document, length) for document in documents]
    assert packed.token_ids.tolist() == [row for rows, _ in found for row in rows]
    assert packed.token_ids.shape[1] == length
    numbers = [number for number, (rows, _) in enumerate(found) for _ in rows]
    assert packed.documents.tolist() == numbers
    assert packed.num_left == sum(left for _, left in found)
    sentences = [[len(s) for s in document if s] for document in documents]
    assert packed.num_sentences == sum(map(len, sentences))
    assert packed.num_without_pair == sum(len(sizes) < 2 for sizes in sentences)
    of_pairs = [size for sizes in sentences if len(sizes) > 1 for size in sizes]
    assert packed.num_split == sum(size > (length - 3) // 2 for size in of_pairs)
    assert packed.num_tokens == sum(int((row >= 10).sum()) for row in packed.token_ids)


def iid(number, sentences, seed=0):
    """Documents whose sentences have independent lengths, 3 to 40 tokens."""
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 41, (number, sentences))
    return [[random.integers(10, 9999, size) for size in of_one] for of_one in sizes]


def test_lengths_do_not_tell_which_segment_is_first():
    """Packed from the beginning alone, first segments are longer, by 9 standard errors."""
    rows = pack_pairs(iid(2000, 15), 100, **IDS).token_ids
    ends = np.argwhere(rows == IDS["end_id"])[:, 1].reshape(-1, 2)
    first, second = ends[:, 0] - 1, np.diff(ends, axis=1)[:, 0] - 1
    difference = first - second
    error = difference.std() / np.sqrt(len(rows))
    assert abs(difference.mean()) < FIVE_SIGMA * error


def test_documents_of_one_sentence_give_no_pair_and_are_counted():
    packed = pack_pairs([[[11, 12]], [], [[], [13]], [list(range(20, 60))]], 9, **IDS)
    assert packed.token_ids.shape == (0, 9)
    assert packed.num_without_pair == 4
    with pytest.raises(ValueError, match="integer >= 5. Received: length=4"):
        pack_pairs([], 4, **IDS)
