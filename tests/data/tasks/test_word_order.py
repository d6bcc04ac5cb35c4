"""The word-order task: both rows of a pair hold the same pieces, in another order."""

import dataclasses
import re

import numpy as np
import pytest
from batch_arrays import arrays_of, assert_same, joined

from keras_tupe.data.rows.tf_dataset import tf_dataset
from keras_tupe.data.tasks.word_order import WordOrderRows, word_order_pairs

IDS = {"start_id": 2, "end_id": 3, "pad_id": 0}
NOUNS = ["cat", "dog", "bird", "fox", "hen", "cow", "horse", "goat", "sheep", "mouse"]
VERBS = ["sees", "hears", "likes", "follows", "meets", "finds", "knows", "helps", "calls"]
PIECES = {}


def tokenize(sentences):
    """Cuts at punctuation, lower-cases, and numbers the pieces from 5 on."""
    pieces = [re.findall(r"\w+|[^\w\s]", sentence.lower()) for sentence in sentences]
    return [[PIECES.setdefault(piece, 5 + len(PIECES)) for piece in row] for row in pieces]


def make_documents(count=400):
    random = np.random.default_rng(2)
    documents = []
    for _ in range(count):
        a, b, c = random.choice(NOUNS, 3)
        v, w = random.choice(VERBS, 2)
        documents.append(f"Every old {a}, I said, {v} the young {b} that {w} (almost) one {c}.")
    return documents


@pytest.fixture(scope="module")
def pairs():
    return word_order_pairs(make_documents(), tokenize, **IDS, seed=5)


def test_exactly_two_neighbouring_words_are_exchanged_at_any_place(pairs):
    assert len(pairs.token_ids) > 500
    for intact, disturbed in zip(pairs.token_ids[::2], pairs.token_ids[1::2], strict=True):
        assert sorted(intact.tolist()) == sorted(disturbed.tolist())
        assert (intact != disturbed).sum() == 2
    places = set()
    for intact, disturbed in zip(pairs.texts[::2], pairs.texts[1::2], strict=True):
        before, after = intact.split(), disturbed.split()
        first, second = (i for i in range(len(before)) if before[i] != after[i])
        assert second == first + 1
        words = [word.strip("(),.") for word in (before[first], before[second])]
        assert [word.strip("(),.") for word in (after[first], after[second])] == words[::-1]
        assert words[0].lower() != words[1].lower()
        # punctuation stays where it was
        marks = [[(m[0], m.end()) for m in re.finditer(r"[,.()]", x)] for x in (intact, disturbed)]
        assert [mark for mark in marks[0] if mark[0] != "("] == [
            mark for mark in marks[1] if mark[0] != "("
        ]
        places.add(first)
    # Every old CAT, | I said, | VERB the young BIRD that VERB | (almost) | one DOG.
    assert places == {0, 1, 3, 5, 6, 7, 8, 9, 12}


def test_rows_are_framed_padded_and_labelled(pairs):
    assert pairs.token_ids.shape == pairs.padding_mask.shape == (len(pairs.texts), 32)
    assert pairs.token_ids.dtype == pairs.padding_mask.dtype == pairs.labels.dtype == np.int32
    assert pairs.labels.tolist() == [0, 1] * (len(pairs.texts) // 2)
    np.testing.assert_array_equal(pairs.padding_mask, pairs.token_ids != 0)
    for row, text in zip(pairs.token_ids.tolist(), pairs.texts, strict=True):
        pieces = tokenize([text])[0]
        assert row == [2, *pieces, 3] + [0] * (30 - len(pieces))


def test_the_choice_depends_on_seed_and_sentence_alone(pairs):
    documents = make_documents()
    again = word_order_pairs(documents[::-1] + documents[:9], tokenize, **IDS, seed=5)
    assert again.texts == pairs.texts
    np.testing.assert_array_equal(again.token_ids, pairs.token_ids)
    few = word_order_pairs(documents, tokenize, **IDS, seed=5, num_pairs=7)
    assert few.texts == pairs.texts[:14]
    fewer = word_order_pairs(documents[:200], tokenize, **IDS, seed=5)
    assert set(zip(fewer.texts[::2], fewer.texts[1::2], strict=True)) <= set(
        zip(pairs.texts[::2], pairs.texts[1::2], strict=True)
    )
    other = word_order_pairs(documents, tokenize, **IDS, seed=6)
    assert sorted(other.texts[::2]) == sorted(pairs.texts[::2])
    assert other.texts[::2] != pairs.texts[::2]
    assert sorted(other.texts[1::2]) != sorted(pairs.texts[1::2])


def test_sentences_of_the_wrong_size_are_left_out():
    words = " ".join(NOUNS)
    documents = [
        f"The {' '.join(NOUNS[:8])}.",  # 9 words
        f"The {words}.",  # 11 words, 12 pieces
        f"A {words}",  # 11 words, 11 pieces
        f"One {words} {words} {words}.",  # 31 words, 32 pieces
        f"An {words} {words} {' '.join(NOUNS[:8])}.",  # 29 words, 30 pieces
        f"{'It, ' * 12}so.",  # no neighbours without punctuation between
        "the the the the the the the the the the the the the.",  # no neighbours that differ
    ]
    kept = word_order_pairs(documents, tokenize, **IDS, seed=0).texts[::2]
    assert sorted(text.split()[0] for text in kept) == ["An", "The"]
    longer = word_order_pairs(documents, tokenize, **IDS, seed=0, length=34).texts[::2]
    assert sorted(text.split()[0] for text in longer) == ["An", "One", "The"]


def test_words_that_differ_in_nothing_but_case_are_not_exchanged():
    documents = [f"{'the The ' * 6}{noun}." for noun in NOUNS]
    texts = word_order_pairs(documents, tokenize, **IDS, seed=0).texts
    assert len(texts) == 2 * len(NOUNS)
    assert all(re.fullmatch(r"(the The ){5}the (\w+) The\.", text) for text in texts[1::2])


def test_text_that_gives_no_pairs_is_refused():
    def all_unknown(sentences):
        return [[1] * 14 for _ in sentences]

    with pytest.raises(ValueError, match=r"needs sentences of 10 to 40 words.*Received: 4"):
        word_order_pairs(make_documents(400), all_unknown, **IDS, seed=0)
    with pytest.raises(ValueError, match=r"Received: 0 such sentences, length=32, num_pairs=None$"):
        word_order_pairs(["Too short."], tokenize, **IDS, seed=0)
    with pytest.raises(ValueError, match=r">= 14.*Received: length=13$"):
        word_order_pairs(make_documents(), tokenize, **IDS, seed=0, length=13)


def test_batches_hold_whole_pairs_and_an_epoch_each_pair_once_in_an_order_of_its_own(pairs):
    masks = np.random.default_rng(0).integers(0, 2, pairs.padding_mask.shape, "int32")
    pairs = dataclasses.replace(pairs, padding_mask=masks)
    rows = WordOrderRows(pairs, batch_size=64, seed=3)
    places = {row.tobytes(): number for number, row in enumerate(pairs.token_ids)}
    count, orders = len(pairs.labels) // 2, []
    for epoch in range(3):
        chosen = []
        for step in range(epoch * rows.num_batches, (epoch + 1) * rows.num_batches):
            inputs, labels, weights = rows.batch(step)
            numbers = np.array([places[row.tobytes()] for row in inputs["token_ids"]])
            np.testing.assert_array_equal(inputs["padding_mask"], masks[numbers])
            np.testing.assert_array_equal(numbers[1::2], numbers[::2] + 1)
            assert labels.tolist() == (numbers % 2).tolist() == [0, 1] * 32
            assert weights.tolist() == [1.0] * 64
            chosen += (numbers[::2] // 2).tolist()
        assert len(set(chosen)) == len(chosen) > count - 32
        orders.append(chosen)
    assert orders[0][:9] != orders[1][:9] != orders[2][:9] != orders[0][:9]


def test_batches_come_by_their_number_alone_through_workers_and_tf_data(pairs):
    rows, again = (WordOrderRows(pairs, batch_size=60, seed=3) for _ in range(2))
    for step, element in enumerate(tf_dataset(rows, 11, 7, num_parallel_calls=3), 11):
        assert_same(arrays_of(element), arrays_of(again.batch(step)))
        assert_same(joined(again.shard(i, 3).batch(step) for i in range(3)), arrays_of(element))
    assert rows.shard(1, 2).signature[1] == ((30,), "int32")
    few = WordOrderRows(pairs, batch_size=10**6, seed=0)
    assert (few.batch_size, few.num_batches) == (len(pairs.labels), 1)


def test_any_step_comes_at_once_and_arguments_that_are_none_are_refused(pairs):
    rows = WordOrderRows(pairs, batch_size=4, seed=2**64 - 1)
    assert rows.batch(10**15)[0]["token_ids"].shape == (4, 32)
    with pytest.raises(ValueError, match="Received: step=-1"):
        rows.batch(-1)
    for seed in (-1, 2**64, 0.5, None):
        with pytest.raises(ValueError, match="`seed` must be.*Received: seed="):
            WordOrderRows(pairs, batch_size=4, seed=seed)
    for size in (None, 2.0, "4", 3, 0):
        with pytest.raises(ValueError, match="an even integer >= 2.*Received: batch_size="):
            WordOrderRows(pairs, batch_size=size, seed=0)
