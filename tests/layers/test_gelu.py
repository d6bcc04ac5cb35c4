import math

import keras
import numpy as np
import pytest
from keras import ops
from tolerances import in_float64

from keras_tupe.layers import gelu, gelu_approximate
from keras_tupe.layers.gelu import activation_of, trained_activation


def test_it_equals_the_exact_equation():
    x = np.linspace(-6, 6, 101)
    expected = [value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in x]
    out = ops.convert_to_numpy(gelu(ops.convert_to_tensor(x, "float64")))
    np.testing.assert_allclose(out, expected, atol=1e-15)


def test_the_approximation_equals_its_equation():
    x = np.linspace(-6, 6, 101)
    expected = x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    out = ops.convert_to_numpy(gelu_approximate(ops.convert_to_tensor(x, "float64")))
    np.testing.assert_allclose(out, expected, atol=in_float64(1e-14))
    exact = ops.convert_to_numpy(gelu(ops.convert_to_tensor(x, "float64")))
    assert 1e-4 < np.abs(out - exact).max() < 5e-4


@pytest.mark.parametrize("function", [gelu, gelu_approximate])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_dtype_stays(function, dtype):
    assert keras.backend.standardize_dtype(function(ops.ones((2, 3), dtype)).dtype) == dtype


@pytest.mark.parametrize("function", [gelu, gelu_approximate])
def test_it_is_saved_under_the_name_of_the_package(function):
    name = f"keras_tupe>{function.__name__}"
    assert keras.saving.get_registered_name(function) == name
    assert keras.saving.get_registered_object(name) is function


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's gradient")
@pytest.mark.parametrize("function", [gelu, gelu_approximate])
def test_the_gradient_of_training_is_that_of_the_equation(function):
    import tensorflow as tf

    x = tf.constant(np.linspace(-5, 5, 41))
    upstream = tf.constant(np.linspace(1, 2, 41))
    found = []
    for each in (function, trained_activation(function)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = each(x)
        found.append((y, tape.gradient(y, x, upstream)))
    for ours, expected in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-14)
    assert trained_activation(np.tanh) is np.tanh


@pytest.mark.parametrize("name", ["gelu_approximat", "relu", None])
def test_an_unknown_activation_is_refused_with_the_nearest(name):
    with pytest.raises(ValueError, match="`activation` must be one of.*Received: activation="):
        activation_of(name)
    with pytest.raises(ValueError, match="Did you mean 'gelu_approximate'"):
        activation_of("gelu_aproximate")
