"""The counter-based generator against its equation in Python integers, and its statistics."""

import hashlib
import itertools
import math

import numpy as np
import pytest

from keras_tupe.data.rows.counter_rng import check_seed, permute, random_bits

WORD = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def splitmix64(state):
    """The published algorithm: the next state, and the output."""
    state = (state + GAMMA) & WORD
    word = state
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return state, word ^ (word >> 31)


def expected_bits(seed, stream, *counters):
    number = int(hashlib.sha256(stream.encode()).hexdigest()[:16], 16)
    _, bits = splitmix64((seed + GAMMA * number) & WORD)
    for counter in counters:
        _, bits = splitmix64((bits + GAMMA * counter) & WORD)
    return bits


def test_the_oracle_is_the_published_generator():
    state, outputs = 1234567, []
    for _ in range(3):
        state, output = splitmix64(state)
        outputs.append(output)
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", [0, 7, WORD])
def test_bits_follow_the_equation(seed):
    examples, positions = np.array([0, 5, 2**40]), np.array([0, 1, 11, 2**20])
    bits = random_bits(seed, "3", examples[:, np.newaxis], positions)
    expected = [[expected_bits(seed, "3", int(e), int(p)) for p in positions] for e in examples]
    assert bits.dtype == np.uint64
    assert bits.tolist() == expected


def test_every_bit_is_fair_and_streams_are_independent():
    one, other = (random_bits(5, stream, np.arange(100_000)) for stream in ("a", "b"))
    shifts = np.arange(64, dtype="uint64")
    for words in (one, other, one ^ other, one[1:] ^ one[:-1]):
        ones = (words[:, np.newaxis] >> shifts & np.uint64(1)).mean(axis=0)
        np.testing.assert_allclose(ones, 0.5, atol=5 * 0.5 / np.sqrt(len(words)))


def order(size, epoch, seed=3):
    return permute(seed, "0", np.full(size, epoch), np.arange(size), size)


def orders(size, num_epochs, seed=3):
    epochs, places = np.divmod(np.arange(size * num_epochs), size)
    return permute(seed, "0", epochs, places, size).reshape(num_epochs, size)


def assert_uniform(counts, expected):
    """Checks Pearson's statistic of counts, at five standard deviations."""
    counts = np.asarray(counts, "float64").ravel()
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(counts) - 1
    assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom), (statistic, freedom)


def expected_thing(seed, stream, epoch, place, size):
    """The network of the docstring, in Python integers."""
    height = next(a for a in itertools.count(1) if a * a >= size)
    width = -(-size // height)

    def below(limit, *counters):
        return (expected_bits(seed, stream, *counters) & 0xFFFFFFFF) * limit >> 32

    thing = place
    while True:
        left, right = divmod(thing, width)
        for index in range(8 + 64 // height):
            if index % 2:
                right = (right + below(width, epoch, index, left)) % width
            else:
                left = (left + below(height, epoch, index, right)) % height
        thing = left * width + right
        if thing < size:
            return thing


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9, 23, 100, 10**9 + 7])
def test_an_order_follows_the_equation(size):
    places = np.arange(min(size, 40))
    epochs = 2**33 + places % 3
    expected = [
        expected_thing(9, "4", int(e), int(p), size) for e, p in zip(epochs, places, strict=True)
    ]
    assert permute(9, "4", epochs, places, size).tolist() == expected


def test_an_order_has_everything_once_whatever_the_size():
    for size in [*range(1, 101), 300, 1000, 4096, 65_537, 300_000]:
        np.testing.assert_array_equal(np.sort(order(size, epoch=7)), np.arange(size))


@pytest.mark.parametrize("size", [3, 6])
def test_all_orders_are_equally_probable(size):
    found = orders(size, 40_000) @ size ** np.arange(size)  # a number for each order
    _, counts = np.unique(found, return_counts=True)
    assert len(counts) == math.factorial(size)
    assert_uniform(counts, 40_000 / len(counts))


def test_an_order_of_any_size_costs_the_same():
    things = permute(3, "0", np.full(256, 10**12), np.arange(256) + 2**61, 2**62)
    assert things.dtype == np.int64
    assert len(np.unique(things)) == 256
    assert things.min() >= 0
    assert things.max() < 2**62


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5])
def test_what_is_not_a_seed_of_64_bits_is_refused(seed):
    with pytest.raises(ValueError, match=rf"`seed` must be an integer .* Received: seed={seed}$"):
        check_seed(seed)
