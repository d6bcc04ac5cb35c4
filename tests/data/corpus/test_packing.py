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


def is_too_small(documents, length):
    return sum(len(sentence) for document in documents for sentence in document) < length - 2


@settings(max_examples=300, deadline=None)
@given(corpora())
def test_no_token_is_lost_and_every_row_is_framed(corpus):
    documents, length = corpus
    if is_too_small(documents, length):
        return
    packed = pack_rows(documents, length, **IDS)
    rows = packed.token_ids
    expected = [token for document in documents for sentence in document for token in sentence]
    assert rows.dtype == np.int32
    assert rows[rows >= 10].tolist() == expected
    assert packed.num_tokens == len(expected)
    assert packed.num_sentences == sum(bool(s) for document in documents for s in document)
    for row in rows.tolist():
        text = row[: row.index(PAD)] if PAD in row else row
        assert text[0] == START
        assert text[-1] == END
        assert text[1] >= 10
        assert START not in text[1:]
        assert row[len(text) :] == [PAD] * (length - len(text))


@settings(max_examples=300, deadline=None)
@given(corpora())
def test_sentences_stay_whole_and_rows_are_as_full_as_they_can_be(corpus):
    documents, length = corpus
    if is_too_small(documents, length):
        return
    packed = pack_rows(documents, length, **IDS)
    row_of = {token: i for i, row in enumerate(packed.token_ids.tolist()) for token in row}
    used = (packed.token_ids != PAD).sum(axis=1) - 2
    sentences = [
        (sentence, index) for index, document in enumerate(documents) for sentence in document
    ]
    sentences = [(sentence, index) for sentence, index in sentences if sentence]
    long = [sentence for sentence, _ in sentences if len(sentence) > length - 2]
    assert packed.num_split == len(long)
    for sentence, _ in sentences:
        if len(sentence) <= length - 2:
            assert len({row_of[token] for token in sentence}) == 1
    for (sentence, index), (following, next_index) in itertools.pairwise(sentences):
        row = row_of[sentence[-1]]
        separator = int(index != next_index)
        needed = 1 if len(following) > length - 2 else len(following)
        fits = used_until(packed.token_ids[row], sentence[-1]) + separator + needed <= length - 2
        assert fits == (row_of[following[0]] == row)
    assert used.min() > 0


@settings(max_examples=300, deadline=None)
@given(corpora())
def test_a_separator_stands_between_documents_and_nowhere_else(corpus):
    documents, length = corpus
    if is_too_small(documents, length):
        return
    packed = pack_rows(documents, length, **IDS)
    document_of = {t: i for i, document in enumerate(documents) for s in document for t in s}
    for row in packed.token_ids.tolist():
        inside = row[1 : len(row) - row[::-1].index(END) - 1]
        for position, token in enumerate(inside):
            if token == END:
                assert document_of[inside[position - 1]] < document_of[inside[position + 1]]
        texts = [document_of[token] for token in inside if token != END]
        assert inside.count(END) == len(set(texts)) - 1


def used_until(row, token):
    return row.tolist().index(token)  # column 0 is the start token


def test_a_long_sentence_fills_the_open_row_and_goes_on():
    packed = pack_rows([[[11, 12], [13, 14, 15, 16, 17, 18, 19, 20]], [[21]]], 6, **IDS)
    assert packed.token_ids.tolist() == [
        [START, 11, 12, 13, 14, END],
        [START, 15, 16, 17, 18, END],
        [START, 19, 20, END, 21, END],
    ]
    assert (packed.num_split, packed.num_sentences, packed.num_tokens) == (1, 3, 11)


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
    with pytest.raises(ValueError, match=r"at least 3.*Received: length=2$"):
        pack_rows([[[11, 12]]], 2, **IDS)
