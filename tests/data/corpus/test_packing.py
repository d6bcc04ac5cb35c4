"""FULL-SENTENCES packing: nothing lost, nothing torn, no row emptier than it must be."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_tupe.data.corpus.packing import pack_rows, tokenize_documents

PAD, START, END = 0, 2, 3
IDS = {"start_id": START, "end_id": END, "pad_id": PAD}


@st.composite
def corpora(draw):
    """Documents of sentences of 0 to 12 tokens, every token with an id of its own; a length."""
    shape = st.lists(st.lists(st.integers(0, 12), max_size=5), min_size=1, max_size=6)
    next_id = iter(range(10, 10_000))
    documents = [
        [[next(next_id) for _ in range(size)] for size in document] for document in draw(shape)
    ]
    return documents, draw(st.integers(3, 15))


def expected_rows(documents, length):
    """The text of the rows, token by token: a second writing, with lists for rows."""
    rows, room = [[]], length - 2
    for document in documents:
        separator = [END] if rows[-1] else []
        for sentence in filter(None, document):
            needed = len(sentence) if len(sentence) <= room else 1
            if len(rows[-1]) + len(separator) + needed > room:
                rows.append([])
            elif separator:
                rows[-1] += separator
            separator = []
            for token in sentence:
                if len(rows[-1]) == room:
                    rows.append([])
                rows[-1].append(token)
    return rows


@settings(max_examples=500, deadline=None)
@given(corpora())
def test_rows_are_those_of_a_second_writing_and_nothing_is_lost(corpus):
    documents, length = corpus
    sentences = [sentence for document in documents for sentence in document if sentence]
    num_tokens = sum(map(len, sentences))
    if num_tokens < length - 2:
        return
    packed = pack_rows(documents, length, **IDS)
    rows = [[START, *text, END] for text in expected_rows(documents, length)]
    assert packed.token_ids.tolist() == [row + [PAD] * (length - len(row)) for row in rows]
    assert packed.token_ids.dtype == np.int32
    assert packed.token_ids[packed.token_ids >= 10].tolist() == [*itertools.chain(*sentences)]
    assert (packed.num_tokens, packed.num_sentences) == (num_tokens, len(sentences))
    assert packed.num_split == sum(len(sentence) > length - 2 for sentence in sentences)


def test_documents_are_split_and_tokenized_in_order():
    calls = []

    def tokenize(sentences):
        calls.append(len(sentences))
        return [[len(word) for word in sentence.split()] for sentence in sentences]

    documents = ["A cat sat. It slept.", "Dogs bark."] * 5000
    tokens = list(tokenize_documents(documents, tokenize))
    assert tokens[:2] == [[[1, 3, 4], [2, 6]], [[4, 5]]]
    assert len(tokens) == 10_000
    assert sum(calls) == 15_000
    assert max(calls) < 10_000  # in blocks, not all at once


@pytest.mark.parametrize("documents", [[], [[]], [[[]]], [[[11, 12]]]])
def test_too_little_text_for_one_row_is_refused(documents):
    message = r"^The held-out part is too small for one row of 5 tokens.*Received: tokens=[02]$"
    with pytest.raises(ValueError, match=message):
        pack_rows(documents, 5, **IDS, part="held-out part")


def test_rows_without_room_are_refused():
    with pytest.raises(ValueError, match=r"integer >= 3. Received: length=2$"):
        pack_rows([[[11, 12]]], 2, **IDS)
