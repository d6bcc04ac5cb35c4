"""Random numbers as pure functions of counters: no state, so any point is reached at once."""

import functools
import hashlib
import math

import numpy as np

from keras_tupe.check import integer

_GAMMA = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd: the step of SplitMix64
_WORD = 2**64 - 1
POSITION_BITS = 20  # rows may have up to 2**20 tokens


def check_seed(seed):
    """Returns `seed` as a Python integer from 0 to 2**64 - 1, which it must be."""
    integer("seed", seed, 0, _WORD)
    return int(seed)


def random_bits(seed, stream, *counters):
    """64 random bits for every tuple of counters.

    Equation: h_0 = mix(seed + G (s + 1)), h_k = mix(h_{k-1} + G (counter_k + 1)) modulo 2**64, with
    s the first 64 bits of the SHA-256 of the stream's name, G the odd golden-ratio constant and
    `mix` the finalizer of SplitMix64; so the last counter walks along one SplitMix64 stream, and
    the others choose the stream. Each use of randomness has a stream of its own. The result, uint64
    of the counters' broadcast shape, is the same on every machine.

    References:
        Steele, Lea, Flood. Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
    """
    start = (check_seed(seed) + _GAMMA * (_number_of(stream) + 1)) & _WORD
    bits = _mix(np.array([start], "uint64"))
    for counter in counters:
        bits = _follow(bits, counter)
    return bits


@functools.cache
def _number_of(stream):
    return int.from_bytes(hashlib.sha256(stream.encode("utf-8")).digest()[:8], "big")


def random_below(bits, limit):
    """Integers from 0 to `limit - 1`, uniform up to limit / 2**32, from the lower 32 bits."""
    low = bits & np.uint64(0xFFFFFFFF)
    return ((low * np.asarray(limit, "uint64")) >> np.uint64(32)).astype("int64")


def random_counts(seed, stream, numbers, share, sizes):
    """int(share * size + U[0, 1)) of each size, at most all: int64, `(n,)`."""
    # 32 bits: the sum stays exact in float64, so that it never rounds up to one too many
    uniform = (random_bits(seed, stream, numbers) >> np.uint64(32)) / 2.0**32
    return np.minimum((share * sizes + uniform).astype("int64"), sizes)


def random_places(seed, stream, numbers, allowed, count):
    """`count` of the allowed places of each row, in random order; those not allowed come last."""
    place = np.arange(allowed.shape[1], dtype="uint64")
    keys = with_places(random_bits(seed, stream, numbers[:, np.newaxis], place), place)
    keys = np.where(allowed, keys, np.uint64(_WORD))
    return places_in(np.sort(np.partition(keys, count - 1, axis=1)[:, :count], axis=1))


def with_places(bits, places):
    """Random bits whose last ones are places, which so go along through a sort."""
    return bits >> np.uint64(POSITION_BITS) << np.uint64(POSITION_BITS) | places.astype("uint64")


def places_in(keys):
    """The places in what `with_places` made, int64."""
    return (keys & np.uint64(2**POSITION_BITS - 1)).astype("int64")


def permute(seed, stream, epochs, places, size):
    """What stands at some places, `(n,)`, of random orders of `size` things, one for each epoch.

    Nothing is sorted or kept: time and memory do not depend on `size`, which may be up to 2**62.

    Equation (a Feistel network on a rectangle): with a = ceil(sqrt(size)), b = ceil(size / a)
    and a position written as L b + R, each of the rounds r = 0, 1, ... does

        L <- (L + F_r(R)) modulo a    if r is even
        R <- (R + F_r(L)) modulo b    if r is odd

    where F_r(x) is the random number below a or b of the counters (epoch, r, x). Each round is
    one-to-one on the a b >= size positions of the rectangle. A result that is none of the `size`
    things goes through all rounds again until it is one (cycle walking): fewer than one in a.

    References:
        Black, Rogaway. Ciphers with Arbitrary Finite Domains. CT-RSA 2002.
    """
    height = math.isqrt(size - 1) + 1
    width = -(-size // height)
    # Small rectangles have few functions F, so that more rounds are needed to mix them.
    rounds = np.arange(8 + 64 // height)[:, np.newaxis]
    keys = random_bits(seed, stream, np.asarray(epochs), rounds)  # (rounds, n)
    things = np.array(places, "int64")
    walking = np.arange(len(things))
    while len(walking):
        things[walking] = _pass(things[walking], keys[:, walking], height, width)
        walking = walking[things[walking] >= size]
    return things


def _pass(places, keys, height, width):
    """All rounds of the network, once."""
    left, right = np.divmod(places, width)
    for index, key in enumerate(keys):
        if index % 2:
            right = (right + random_below(_follow(key, left), width)) % width
        else:
            left = (left + random_below(_follow(key, right), height)) % height
    return left * width + right


def _follow(bits, counter):
    """The random bits of one more counter."""
    # Always at least 1-D: NumPy warns when scalars wrap around, but not when arrays do.
    step = np.atleast_1d(np.asarray(counter)).astype("uint64")
    return _mix(bits + (step + np.uint64(1)) * np.uint64(_GAMMA))


def _mix(bits):
    """A bijection of 64-bit words (SplitMix64's finalizer), in place."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits
