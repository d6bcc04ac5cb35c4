"""Where the released numbers are, and how near ours come to them."""

import pathlib

import keras
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"
DTYPES = [("float64", 1e-10), ("float32", 2e-5)]


def skip_float64_on_jax(dtype):
    """Skips a test of float64 where a whole model would be of float32."""
    if dtype == "float64" and keras.backend.backend() == "jax":
        pytest.skip(
            "on JAX this Keras rounds a model to float32; run it with KERAS_BACKEND=tensorflow"
        )


def assert_close(ours, theirs, tolerance):
    """Compares arrays on the scale of the largest number in the second."""
    scale = np.abs(theirs[np.isfinite(theirs)]).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1, scale))


def built(layer, width, values):
    """Builds a layer of states of a width, and sets weights by path; returns those not given."""
    layer.build((None, None, width))
    ours = {weight.path.partition("/")[2]: weight for weight in layer.trainable_weights}
    for path, value in values.items():
        ours.pop(path).assign(value)
    return sorted(ours)
