"""Word counts: equal to a plain count, and the counts of parts add up."""

import collections
import random

import pytest

from keras_tupe.data import WordCounts, wordpiece_words

WORDS = ["Stop,", "stop", "Caf\u00e9s", "\u4e2d\u6587", "don't", "5.2", "\u200d", "--"]


@pytest.fixture
def documents():
    rng = random.Random(5)
    return [" ".join(rng.choices(WORDS, k=rng.randint(0, 31))) for _ in range(53)]


def plain_count(documents, split_word):
    words = " ".join(documents).split()
    return collections.Counter(part for word in words for part in split_word(word))


@pytest.mark.parametrize("flush", [7, 4_000_000])
@pytest.mark.parametrize("lowercase", [True, False])
def test_counts_equal_a_plain_count_however_often_they_are_split(
    documents, lowercase, flush, monkeypatch
):
    monkeypatch.setattr("keras_tupe.data.corpus.word_counts._WORDS_PER_FLUSH", flush)
    split_word = wordpiece_words(lowercase)
    counts = WordCounts(split_word)
    for document in documents:
        counts.add(document)
    assert counts.total() == plain_count(documents, split_word)
    assert counts.total()["stop" if lowercase else "Stop"] > 50


def test_without_a_function_words_stand_between_white_space(documents):
    counts = WordCounts()
    for document in documents:
        counts.add(f"\n{document}\t")
    assert counts.total() == plain_count(documents, lambda word: [word])
    assert counts.total().keys() == set(WORDS)


def test_counts_go_on_after_a_total(documents):
    counts = WordCounts(wordpiece_words())
    for document in documents:
        counts.add(document)
        total = counts.total()
    assert total == counts.total() == plain_count(documents, wordpiece_words())


def test_counts_of_parts_add_up(documents):
    whole, parts = WordCounts(str.split), [WordCounts(str.split) for _ in range(3)]
    for number, document in enumerate(documents):
        whole.add(document)
        parts[number % 3].add(document)
    assert sum((part.total() for part in parts), collections.Counter()) == whole.total()


def test_no_text_has_no_words():
    counts = WordCounts()
    counts.add(" \n")
    assert counts.total() == {}
