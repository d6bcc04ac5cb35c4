"""Examples of denoising: against the noise written down span by span, and what it never does."""

import re

import numpy as np
import pytest
import scipy.stats

from keras_tupe import data
from keras_tupe.data.rows.counter_rng import random_bits

PAD, UNKNOWN, START, END, MASK, STOP = 0, 1, 2, 3, 4, 5
SIZE, LENGTH, SEED = 60, 23, 11
SPECIAL = (PAD, UNKNOWN, START, END, MASK)


def rule(size=SIZE, **settings):
    frame = {"frame_ids": (START, END), "special_ids": SPECIAL, "stop_ids": (STOP,)}
    return data.Denoising(size, mask_id=MASK, pad_id=PAD, **frame, **settings)


def make_rows(number, seed=0, length=LENGTH):
    """Rows of one to three documents of random tokens, with stops, unknown words and padding."""
    random = np.random.default_rng(seed)
    rows = np.full((number, length), PAD)
    for row in rows:
        text = random.integers(STOP + 1, SIZE, random.integers(1, length - 1))
        draw = random.random(len(text))
        text[draw < 0.3], text[draw < 0.12], text[draw < 0.06] = STOP, END, UNKNOWN
        row[: len(text) + 2] = [START, *text, END]
    return rows


# === Against the noise span by span ===


def bits(stream, number, column=None):
    counters = (number,) if column is None else (number, column)
    return int(random_bits(SEED, stream, *counters)[0])


def permuted(row, number):
    """The row with the sentences of each document, `x*\\.+` or `x+`, in the order of their bits."""
    kinds = {START: "F", END: "F", PAD: "F", STOP: "."}
    text, found, document = "".join(kinds.get(token, "x") for token in row), [], []
    for part in re.finditer(r"F|x*\.+|x+|$", text):
        begin, end = part.span()
        if part[0] in ("F", ""):
            found += [token for _, sentence in sorted(document) for token in sentence]
            found += row[begin:end]
            document = []
        else:
            document.append((bits("denoising: sentence", number, begin), row[begin:end]))
    return found


def infilled(row, number, share, mean):
    text = [place for place, token in enumerate(row) if token not in SPECIAL]
    total = min(
        int(share * len(text) + (bits("denoising: count", number) >> 32) / 2**32), len(text)
    )
    spans, left = [], total
    while left and len(spans) < total:
        uniform = ((bits("denoising: length", number, len(spans)) >> 32) + 0.5) / 2**32
        drawn = min(int(scipy.stats.poisson.ppf(uniform, mean)), left)
        spans.append(left if len(spans) == total - 1 else drawn)
        left -= spans[-1]
    items = len(text) - total + len(spans)
    order = sorted(
        range(items), key=lambda item: (bits("denoising: place", number, item) >> 20, item)
    )
    masks = dict(zip(order, spans, strict=False))
    # what stands before a token: masks of no tokens; and what a token's own span is
    before, span_of, place = [[] for _ in range(len(row) + 1)], {}, 0
    for item in range(items):
        width = masks.get(item, 1)
        if item in masks and not width:
            at = text[place] if place < len(text) else text[-1] + 1
            before[at].append(item)
        for _ in range(width):
            span_of[text[place]] = item if item in masks else None
            place += 1
    pieces = sum(
        span_of.get(p) is not None and span_of.get(p) != span_of.get(p - 1) for p in range(len(row))
    )
    found, room = [], total - pieces
    for place in range(len(row) + 1):
        for _ in before[place]:
            found += [MASK] if room > 0 else []
            room -= 1
        if place == len(row) or row[place] == PAD:
            continue
        span = span_of.get(place)
        if span is None:
            found.append(row[place])
        elif span != span_of.get(place - 1):
            found.append(MASK)
    return found + [PAD] * (len(row) - len(found))


@pytest.mark.parametrize(("share", "mean"), [(0.3, 3.0), (0.9, 1.0), (0.5, 1.5), (1.0, 30.0)])
def test_the_noise_is_that_of_the_oracle(share, mean):
    rows, numbers = make_rows(150), np.arange(150) * 7
    for order in (permuted, lambda row, number: row):
        whole = rule(infill_share=share, mean_span=mean, permute_sentences=order is permuted)
        found = whole.noised(rows, numbers, SEED)
        for row, number, one in zip(rows.tolist(), numbers.tolist(), found, strict=True):
            assert one.tolist() == infilled(order(row, number), number, share, mean)


# === What is promised of every row ===


@pytest.mark.parametrize(("share", "mean"), [(0.3, 3.0), (1.0, 1.0), (0.05, 50.0)])
def test_special_tokens_stay_and_no_row_becomes_longer(share, mean):
    rows = make_rows(2000, seed=1)
    inputs, _, _ = rule(infill_share=share, mean_span=mean).examples(rows, np.arange(2000), 0)
    found = inputs["encoder_token_ids"]
    sizes = (found != PAD).sum(axis=1)
    assert (sizes <= (rows != PAD).sum(axis=1)).all()
    is_first = np.arange(LENGTH) < sizes[:, np.newaxis]
    np.testing.assert_array_equal(inputs["encoder_padding_mask"], is_first)
    num_text = np.isin(rows, SPECIAL, invert=True).sum(axis=1)
    covered = num_text - np.isin(found, SPECIAL, invert=True).sum(axis=1)
    assert (covered >= (share * num_text).astype(int)).all()
    assert (covered <= np.ceil(share * num_text)).all()
    assert ((found == MASK).sum(axis=1) <= covered).all()
    for row, one in zip(rows, found, strict=True):
        frame = (START, END)
        assert one[np.isin(one, frame)].tolist() == row[np.isin(row, frame)].tolist()
        assert (one == UNKNOWN).sum() == (row == UNKNOWN).sum()


def test_the_target_is_the_row_as_it_was():
    rows = make_rows(50, seed=2)
    inputs, labels, weights = rule().examples(rows, np.arange(50), 0)
    np.testing.assert_array_equal(inputs["decoder_token_ids"], rows[:, :-1])
    np.testing.assert_array_equal(inputs["decoder_padding_mask"], rows[:, :-1] != PAD)
    np.testing.assert_array_equal(labels, rows[:, 1:])
    np.testing.assert_array_equal(weights, rows[:, 1:] != PAD)  # the last end token counts


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(
        ValueError, match="`infill_share` must be a number above 0 and at most 1.*infill_share=0"
    ):
        rule(infill_share=0)
    with pytest.raises(
        ValueError, match="`mean_span` must be a number at least 1 and at most 100.*mean_span=0.5"
    ):
        rule(mean_span=0.5)
    with pytest.raises(ValueError, match="`stop_ids`.*must be from 0 to 59. Received: .99"):
        data.Denoising(SIZE, mask_id=MASK, pad_id=PAD, stop_ids=(99,))
