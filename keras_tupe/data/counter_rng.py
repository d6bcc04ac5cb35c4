"""Random numbers as pure functions of counters: no state, so any point is reached at once."""

import operator

import numpy as np

_GAMMA = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, odd: the step of SplitMix64
_WORD = 2**64 - 1


def check_seed(seed):
    """Returns `seed` as a Python integer.

    Raises:
        TypeError: if `seed` is not an integer.
        ValueError: if it does not fit into 64 bits without sign.
    """
    try:
        seed = operator.index(seed)
    except TypeError:
        raise TypeError(f"`seed` must be an integer. Received: seed={seed!r}") from None
    if not 0 <= seed <= _WORD:
        raise ValueError(f"`seed` must be from 0 to 2**64 - 1. Received: seed={seed}")
    return seed


def random_bits(seed, stream, *counters):
    """64 random bits for every tuple of counters.

    Equation: h_0 = mix(seed + G (stream + 1)), h_k = mix(h_{k-1} + G (counter_k + 1)) modulo
    2**64, with G the odd golden-ratio constant and `mix` the finalizer of SplitMix64; so the
    last counter walks along one SplitMix64 stream, and the others choose the stream.

    Args:
        seed: integer from 0 to 2**64 - 1.
        stream: small integer >= 0; each use of randomness has its own.
        *counters: integer arrays >= 0, at least one, broadcast together.

    Returns:
        uint64 array of the broadcast shape, the same on every machine.

    References:
        Steele, Lea, Flood. Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
    """
    start = (check_seed(seed) + _GAMMA * (stream + 1)) & _WORD
    bits = _mix(np.array([start], "uint64"))
    for counter in counters:
        # Always at least 1-D: NumPy warns when scalars wrap around, but not when arrays do.
        step = np.atleast_1d(np.asarray(counter)).astype("uint64")
        bits = _mix(bits + (step + np.uint64(1)) * np.uint64(_GAMMA))
    return bits


def random_below(bits, limit):
    """Integers from 0 to `limit - 1`, uniform up to limit / 2**32, from 32 random bits.

    Args:
        bits: uint64 array of which the lower 32 bits are used.
        limit: integer from 1 to 2**32.

    Returns:
        int64 array of the same shape.
    """
    low = bits & np.uint64(0xFFFFFFFF)
    return ((low * np.uint64(limit)) >> np.uint64(32)).astype("int64")


def permutation(seed, stream, epoch, size):
    """The order of `size` things in epoch number `epoch`: ranks of their random bits.

    Returns:
        int64 array with each of 0 .. size - 1 once; every order is equally probable.
    """
    # stable: equal keys must not depend on the sorting code of the machine
    return np.argsort(random_bits(seed, stream, epoch, np.arange(size)), kind="stable")


def _mix(bits):
    """A bijection of 64-bit words (SplitMix64's finalizer), in place."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits
