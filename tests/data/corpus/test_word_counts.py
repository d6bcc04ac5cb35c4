"""Word counts: equal to a plain count, and the counts of parts add up."""

import collections
import random

import pytest

from keras_tupe.data import WordCounts, wordpiece_words

WORDS = ["Stop,", "stop", "Caf\u00e9s", "\u4e2d\u6587", "don't", "5.2", "\u200d", "--"]
SPLITS = {"raw": None, "lower": wordpiece_words(), "cased": wordpiece_words(lowercase=False)}


@pytest.mark.parametrize("flush", [3, 4_000_000])
@pytest.mark.parametrize("kind", SPLITS)
def test_counts_equal_a_plain_count_however_often_they_are_split(kind, flush, monkeypatch):
    monkeypatch.setattr("keras_tupe.data.corpus.vocabulary._MOST_RAW_WORDS", flush)
    rng = random.Random(5)
    documents = [" ".join(rng.choices(WORDS, k=rng.randint(0, 31))) for _ in range(53)]
    split = SPLITS[kind] or (lambda word: [word])
    words = [part for document in documents for word in document.split() for part in split(word)]

    whole, parts = WordCounts(SPLITS[kind]), [WordCounts(SPLITS[kind]) for _ in range(3)]
    for number, document in enumerate(documents):
        whole.add(f"\n{document}\t")
        parts[number % 3].add(document)
        if number == 20:
            assert 0 < whole.total().total() < len(words)  # and counting goes on
    assert whole.total() == collections.Counter(words)
    assert sum((part.total() for part in parts), collections.Counter()) == whole.total()
    assert whole.total()["Stop," if kind == "raw" else "stop"] > 50
    assert "Stop" not in whole.total() or kind == "cased"
    empty = WordCounts()
    empty.add(" \n")
    assert empty.total() == {}
