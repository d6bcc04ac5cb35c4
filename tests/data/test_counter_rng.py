"""The counter-based generator against its equation in Python integers, and its statistics."""

import numpy as np
import pytest

from keras_tupe.data.counter_rng import check_seed, permutation, random_below, random_bits

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
    _, bits = splitmix64((seed + GAMMA * stream) & WORD)
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
    bits = random_bits(seed, 3, examples[:, np.newaxis], positions)
    expected = [[expected_bits(seed, 3, int(e), int(p)) for p in positions] for e in examples]
    assert bits.dtype == np.uint64
    assert bits.tolist() == expected


def test_a_value_does_not_depend_on_its_neighbours():
    together = random_bits(1, 0, np.arange(1000))
    alone = [random_bits(1, 0, number)[0] for number in (0, 1, 999)]
    assert together[[0, 1, 999]].tolist() == alone


def test_every_bit_is_fair_and_streams_are_independent():
    one, other = (random_bits(5, stream, np.arange(100_000)) for stream in (0, 1))
    shifts = np.arange(64, dtype="uint64")
    for words in (one, other, one ^ other, one[1:] ^ one[:-1]):
        ones = (words[:, np.newaxis] >> shifts & np.uint64(1)).mean(axis=0)
        np.testing.assert_allclose(ones, 0.5, atol=5 * 0.5 / np.sqrt(len(words)))


def test_integers_below_a_limit_are_uniform():
    counts = np.bincount(random_below(random_bits(2, 0, np.arange(70_000)), 7), minlength=7)
    deviation = np.sqrt(70_000 * (1 / 7) * (6 / 7))
    np.testing.assert_allclose(counts, 10_000, atol=5 * deviation)


def test_a_permutation_has_everything_once_and_changes_with_the_epoch():
    first, second = (permutation(3, 0, epoch, 1001) for epoch in (0, 1))
    np.testing.assert_array_equal(np.sort(first), np.arange(1001))
    np.testing.assert_array_equal(np.sort(second), np.arange(1001))
    assert np.mean(first == second) < 0.01


def test_all_orders_are_equally_probable():
    orders = [tuple(permutation(3, 0, epoch, 3)) for epoch in range(6000)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    assert len(counts) == 6
    np.testing.assert_allclose(counts, 1000, atol=5 * np.sqrt(6000 / 6 * 5 / 6))


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_outside_64_bits_is_refused(seed):
    with pytest.raises(ValueError, match=rf"`seed` must be from 0 .* Received: seed={seed}$"):
        check_seed(seed)


def test_a_seed_that_is_no_integer_is_refused():
    with pytest.raises(TypeError, match=r"must be an integer. Received: seed=1.5$"):
        check_seed(1.5)
