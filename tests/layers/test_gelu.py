import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.layers import gelu


def test_it_equals_the_exact_equation():
    x = np.linspace(-6, 6, 101)
    expected = [value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in x]
    out = ops.convert_to_numpy(gelu(ops.convert_to_tensor(x, "float64")))
    np.testing.assert_allclose(out, expected, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_dtype_stays(dtype):
    assert keras.backend.standardize_dtype(gelu(ops.ones((2, 3), dtype)).dtype) == dtype


def test_it_is_saved_under_the_name_of_the_package():
    assert keras.saving.get_registered_name(gelu) == "keras_tupe>gelu"
    assert keras.saving.get_registered_object("keras_tupe>gelu") is gelu
