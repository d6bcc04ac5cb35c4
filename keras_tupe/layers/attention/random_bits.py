"""Random bits by counter: the bits of an element depend on its coordinates and a seed alone.

So a block of a tensor has the bits that it has in the whole, in any order and on any backend, and
nothing random has to be kept for the backward pass. A row of the tensor gets two words of its own
from the seed, by rounds of a multiplicative hash; the elements of a row count up from the first
word, and are mixed with the second. Compiled, that is part of the pass over the elements that uses
it, while the bits of the stock generators take longer to make than the attention scores.
"""

import math

import keras
from keras import ops

_MOST_ROWS = 2**17  # of the last axis of rows, so that rows have numbers that do not meet
_GOLDEN = 0x9E3779B9  # 2**32 over the golden ratio: neighbors start far apart
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B  # of Wellons's hash, with the shifts 16, 15 and 16


def can_draw():
    """Returns whether the backend has the integers that are needed."""
    return keras.backend.backend() in ("tensorflow", "jax")


def keep_mask(shape, rate, seed, first_row=0):
    """Returns which elements dropout keeps, booleans of `shape`.

    Equation, for element c of row r, with 32-bit words:

        keep = hash(r, c, seed) >= rate * 2**32

    The last axis of `shape` are columns, all others rows, of which those of the second last begin
    at `first_row` of the whole tensor. The rate is rounded to a multiple of 2**-32; the seed are
    two integers.
    """
    *outer, rows, columns = shape
    number = ops.expand_dims(ops.arange(rows, dtype="int32") + first_row, 0)
    if outer:
        known = all(isinstance(size, int) for size in outer)
        count = math.prod(outer) if known else ops.prod(ops.stack(outer))
        number = number + ops.expand_dims(ops.arange(count, dtype="int32"), 1) * _MOST_ROWS
    seed = ops.cast(seed, "uint32")
    first = _hash(_hash(ops.cast(number, "uint32") + seed[0]) + seed[1])
    second = _hash(ops.bitwise_xor(first, _word(_GOLDEN)))
    first, second = (ops.reshape(x, (*outer, rows, 1)) for x in (first, second))
    x = first + ops.cast(ops.arange(columns, dtype="int32"), "uint32") * _word(_GOLDEN)
    x = _mixed(x, 16) * _word(_FIRST)
    x = _mixed(ops.bitwise_xor(x, second), 15) * _word(_SECOND)
    return _mixed(x, 16) >= _word(min(round(rate * 2**32), 2**32 - 1))


def _hash(x):
    x = _mixed(x, 16) * _word(_FIRST)
    x = _mixed(x, 15) * _word(_SECOND)
    return _mixed(x, 16)


def _mixed(x, bits):
    return ops.bitwise_xor(x, ops.right_shift(x, _word(bits)))


def _word(number):
    return ops.convert_to_tensor(number, "uint32")
