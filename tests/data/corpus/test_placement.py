"""Where documents go: pure functions of their text, independent of each other."""

import hashlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_tupe.data import (
    block_number,
    choose_num_blocks,
    document_digest,
    is_held_out,
    is_sampled,
    multiset_hash,
)

NUMBER = 20_011
DIGESTS = [document_digest(f"document {number}") for number in range(NUMBER)]


def digest_with(position, value, size):
    return bytes(position) + value.to_bytes(size, "big") + bytes(32 - position - size)


def within(count, share, number=NUMBER):
    """Within six standard deviations of a binomial count."""
    return abs(count - share * number) < 6 * math.sqrt(share * (1 - share) * number)


def test_the_digest_is_sha256_of_the_utf8_text():
    assert document_digest("Caf\u00e9\n") == hashlib.sha256(b"Caf\xc3\xa9\n").digest()


@pytest.mark.parametrize("choose", [is_held_out, is_sampled])
def test_the_expected_share_is_chosen_and_a_larger_share_only_adds(choose):
    before = set()
    for share in (0.01, 0.23, 0.5, 0.97):
        chosen = {digest for digest in DIGESTS if choose(digest, share)}
        assert within(len(chosen), share)
        assert before < chosen
        before = chosen
    assert not any(choose(digest, 0) for digest in DIGESTS)
    assert all(choose(digest, 1) for digest in DIGESTS)


@pytest.mark.parametrize(("choose", "position"), [(is_held_out, 0), (is_sampled, 16)])
def test_shares_are_read_from_their_own_bytes(choose, position):
    below, at = (digest_with(position, value, 8) for value in (2**62 - 1024, 2**62))
    assert choose(below, 0.25)
    assert not choose(at, 0.25)
    for other in {0, 8, 16, 24} - {position}:
        assert choose(digest_with(other, 2**64 - 1, 8), 1e-9)


def test_part_block_and_sample_are_independent():
    held_out = [digest for digest in DIGESTS if is_held_out(digest, 0.5)]
    assert within(sum(is_sampled(digest, 0.5) for digest in held_out), 0.5, len(held_out))
    assert within(sum(block_number(digest, 2) for digest in held_out), 0.5, len(held_out))
    sampled = [digest for digest in DIGESTS if is_sampled(digest, 0.5)]
    assert within(sum(block_number(digest, 2) for digest in sampled), 0.5, len(sampled))


@pytest.mark.parametrize("bits", range(33))
def test_blocks_are_numbered_by_the_leading_bits(bits):
    for value in (0, 1, 2**31 - 1, 2**31, 0x9E3779B9, 2**32 - 1):
        assert block_number(digest_with(8, value, 4), 2**bits) == value * 2**bits // 2**32
    assert block_number(b"\xff" * 8 + bytes(4) + b"\xff" * 20, 2**bits) == 0


def test_blocks_are_about_equal_and_halving_joins_neighbours():
    counts = [0] * 16
    for digest in DIGESTS:
        block = block_number(digest, 16)
        counts[block] += 1
        assert block_number(digest, 8) == block // 2
    assert all(within(count, 1 / 16) for count in counts)


@given(st.integers(0, 2**45), st.integers(1, 2**30))
def test_the_number_of_blocks_is_the_smallest_power_of_two_that_suffices(num_bytes, block_bytes):
    number = choose_num_blocks(num_bytes, block_bytes)
    assert number & (number - 1) == 0
    assert number * block_bytes >= num_bytes
    assert number == 1 or number // 2 * block_bytes < num_bytes


@pytest.mark.parametrize(
    ("num_bytes", "number"),
    [(0, 1), (1, 1), (97, 1), (98, 2), (194, 2), (195, 4), (388, 4), (389, 8)],
)
def test_a_block_holds_its_bytes_on_average(num_bytes, number):
    assert choose_num_blocks(num_bytes, 97) == number


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=7), st.randoms())
def test_the_hash_of_a_multiset_adds_up_whatever_the_order(digests, random):
    whole = multiset_hash(digests)
    shuffled = random.sample(digests, len(digests))
    assert multiset_hash(shuffled) == whole
    half = len(digests) // 2
    assert (multiset_hash(shuffled[:half]) + multiset_hash(shuffled[half:])) % 2**256 == whole
    assert 0 <= whole < 2**256


def test_the_hash_of_a_multiset_counts_members():
    first, second = DIGESTS[:2]
    names = [multiset_hash(m) for m in ([], [first], [second], [first] * 2, [first, second])]
    assert len(set(names)) == 5
    assert names[1] == int.from_bytes(first, "big")
