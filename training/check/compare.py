"""A promise that is not kept, said in a sentence, and how near two arrays must be."""

import keras
import numpy as np


class BrokenPromiseError(AssertionError):
    """A promise that a method does not keep; the message says which, and by how much."""


def require(is_kept, sentence):
    """Raises `BrokenPromiseError` with a sentence, unless a promise is kept."""
    if not is_kept:
        raise BrokenPromiseError(sentence)


def require_near(got, wanted, tolerance, what, relative=0.0):
    """Raises `BrokenPromiseError` if two arrays differ by more than a tolerance, and says where.

    Args:
        got: array.
        wanted: array of the same shape.
        tolerance: largest difference that is allowed, absolute.
        what: what the arrays are, for the sentence: "X differs from Y".
        relative: what is allowed beside it, as a share of `wanted`. Defaults to none.
    """
    got, wanted = np.asarray(got, "float64"), np.asarray(wanted, "float64")
    require(got.shape == wanted.shape, f"{what}: the shapes are {got.shape} and {wanted.shape}.")
    difference = np.abs(got - wanted)
    if not (difference <= tolerance + relative * np.abs(wanted)).all():
        largest = np.where(np.isnan(difference), np.inf, difference)
        place = tuple(int(index) for index in np.unravel_index(largest.argmax(), got.shape))
        raise BrokenPromiseError(
            f"{what} by {difference[place]:.1e} at {place}, and {tolerance:.0e} is allowed. "
            f"Received: {got[place]:.6g} in place of {wanted[place]:.6g}."
        )


def in_float64(tolerance):
    """Returns `tolerance` on TensorFlow, and float32's elsewhere.

    Keras computes layer normalizations, sines and tanh of float64 tensors in float32 on JAX.
    """
    return tolerance if keras.backend.backend() == "tensorflow" else 2e-5
