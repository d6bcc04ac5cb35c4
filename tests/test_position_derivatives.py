"""Gradients of content-dependent attention against numerical differentiation, in float64."""

import numpy as np
import pytest
from position_cases import METHOD_NAMES, WIDTH, Case, MethodLayers

from keras_tupe import positions

STEP = 1e-5


def in_attention(name):
    """Returns whether a method acts inside attention, and not by a bias that is added."""
    method = positions.get(name)
    return method.bias is None and name not in ("none", "absolute", "sinusoidal")


NAMES = [name for name in METHOD_NAMES if in_attention(name)]
# Short, unclipped; and longer than a block of rows, with a clip where there is one.
LENGTHS = (6, 70)


def cases(name, length):
    options = positions.get(name).options
    cls = (("cls", "untied"),) if "cls" in options else ()
    return Case(name, cls + ((("k", 3),) if "k" in options and length == 70 else ()))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_numerical_ones(name, length, tensorflow):
    method = MethodLayers(cases(name, length), "float64", max_length=length)
    rng = np.random.default_rng(0)
    x = tensorflow.constant(rng.normal(size=(2, length, WIDTH)))
    mask = tensorflow.constant((np.arange(length) < [[length], [length - 2]]).astype("int32"))
    target = rng.normal(size=x.shape)
    variables = [weight.value for weight in method.weights if weight.trainable]
    values = [x, *(tensorflow.identity(variable) for variable in variables)]

    @tensorflow.function
    def loss(x):
        shared = method.shared(x) if method.shared else None
        output = method.attention(x, shared_positions=shared, padding_mask=mask)
        return tensorflow.reduce_sum(output * target)

    def loss_at(moved):
        for variable, value in zip(variables, moved[1:], strict=True):
            variable.assign(value)
        return float(loss(moved[0]))

    with tensorflow.GradientTape() as tape:
        tape.watch(x)
        value = loss(x)
    gradients = tape.gradient(value, [x, *variables])
    # One random direction for each input and weight.
    for index, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        ends = []
        for sign in (1, -1):
            moved = list(values)
            moved[index] = values[index] + sign * STEP * direction
            ends.append(loss_at(moved))
        numerical = (ends[0] - ends[1]) / (2 * STEP)
        analytical = float(np.sum(gradient * direction))
        scale = np.linalg.norm(gradient) + 1
        name_of = "input" if index == 0 else method.weights[index - 1].path
        assert abs(numerical - analytical) < 1e-7 * scale, name_of
    loss_at(values)


def test_every_method_inside_attention_is_here():
    assert {"shaw", "xlnet", "qkr_1", "qkr_2", "qkr_3", "qkr_4", "deberta", "rope"} <= set(NAMES)
