"""Every position bias as attention is handed it, in short and long texts; buckets; FIRE.

Their equations are those of the oracles: `test_position_promises.py`.
"""

import math

import hypothesis
import keras
import numpy as np
import pytest
from bias_cases import BIASES, LONG, H
from hypothesis import strategies as st
from keras import ops
from tolerances import in_float64

from keras_tupe.layers import CombinedPositionBias
from keras_tupe.layers.attention.position_terms import matrix_of_parts
from keras_tupe.layers.relative_bucket_bias import relative_buckets
from keras_tupe.positions.alibi import AlibiBias
from keras_tupe.positions.fire import FireBias
from keras_tupe.positions.free_table import FreeTableBias


def scrambled(layer, shape):
    layer.build(shape)
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize(("kind", "given", "num_weights", "is_exact"), BIASES)
def test_parts_make_the_bias_of_short_and_long_texts(kind, given, num_weights, is_exact):
    layer = scrambled(kind(H, **given, dtype="float64"), (1, 7, 11))
    for length in (1, 2, 7, LONG):
        bias = ops.convert_to_numpy(layer(np.random.normal(size=(2, length, 11))))
        assert bias.shape == (1, H, length, length)
        parts = layer.bias_parts(np.zeros((1, length, 11)))
        assert tuple(parts) == layer.kinds
        for name, part in parts.items():
            last = {"distances": (2 * length,), "matrix": (length, length)}
            assert part.shape == (H, *last.get(name, (length, layer.rank)))
        again = ops.convert_to_numpy(matrix_of_parts(parts, length))
        np.testing.assert_array_equal(again, bias)


@pytest.mark.parametrize("untie_cls", [False, True])
@pytest.mark.parametrize("length", [7, LONG])
def test_what_attention_is_handed_is_what_the_spec_says_and_makes_the_bias(length, untie_cls):
    parts = [
        layer(H, **given, dtype="float64", name=str(number))
        for number, (layer, given, *_) in enumerate(BIASES)
        if "matrix" not in layer.kinds
    ]
    nested = CombinedPositionBias(parts[:2], untie_cls=untie_cls, dtype="float64", name="nested")
    layer = CombinedPositionBias([nested, *parts[2:]], untie_cls, dtype="float64")
    scrambled(layer, (1, length, 11))
    x = np.zeros((1, length, 11))
    handed = layer(x, as_parts=True)
    spec = layer.compute_output_spec(keras.KerasTensor(x.shape, "float64"), as_parts=True)
    assert list(handed) == ["bias", *layer.kinds] == list(spec)
    assert handed["bias"].shape == ((1, H, 0, 0) if length > 512 else (1, H, length, length))
    assert all(handed[name].shape == spec[name].shape for name in layer.kinds)
    whole = ops.convert_to_numpy(matrix_of_parts(handed, length))
    np.testing.assert_allclose(whole, ops.convert_to_numpy(layer(x)), atol=in_float64(1e-9))


def test_a_part_that_is_a_plain_layer_or_a_matrix_is_handed_as_a_bias():
    class Plain(keras.layers.Layer):
        def call(self, hidden_states):
            length = ops.shape(hidden_states)[1]
            return ops.ones((1, H, length, length), self.compute_dtype)

    for part in (Plain(), FreeTableBias(H, 13, initializer="ones")):
        layer = CombinedPositionBias([AlibiBias(H), part], untie_cls=True)
        x = np.zeros((1, 7, 11), "float32")
        bias = layer(x, as_parts=True)
        assert layer.kinds == ("matrix",)
        wanted = 1 + ops.convert_to_numpy(AlibiBias(H)(x))
        np.testing.assert_allclose(ops.convert_to_numpy(bias)[..., 1:, 1:], wanted[..., 1:, 1:])


def test_learned_slopes_begin_at_the_published_ones_which_the_other_side_has_mirrored():
    for learned in (False, True):
        layer = AlibiBias(4, learned=learned, sides=2, dtype="float64")
        both = -ops.convert_to_numpy(layer(np.zeros((1, 2, 4))))[0]
        np.testing.assert_allclose(both[:, 1, 0], 0.25 ** np.arange(1, 5), rtol=1e-6)
        np.testing.assert_allclose(both[:, 0, 1], both[::-1, 1, 0], rtol=1e-12)


def test_fire_of_unknown_lengths_is_that_of_known_ones(tensorflow):
    layer = scrambled(FireBias(3, threshold=9.0, width=5, dtype="float64"), (1, None, 4))
    weights = [weight.value for weight in layer.trainable_variables]

    def bias_and_gradients(hidden_states, upstream):
        with tensorflow.GradientTape() as tape:
            bias = layer(hidden_states)
        return bias, *tape.gradient(bias, weights, upstream)

    shapes = ((1, None, 4), (1, 3, None, None))
    signature = [tensorflow.TensorSpec(shape, "float64") for shape in shapes]
    graph = tensorflow.function(bias_and_gradients, input_signature=signature)
    for length in (1, 64, 65, 130):
        upstream = np.random.default_rng(2).normal(size=(1, 3, length, length))
        given = np.zeros((1, length, 4)), upstream
        for one, other in zip(graph(*given), bias_and_gradients(*given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_gradients_of_fire_equal_numerical_ones(tensorflow):
    length = 130  # two blocks of queries and a part
    layer = scrambled(FireBias(3, threshold=9.0, width=5, dtype="float64"), (1, length, 4))
    first = [ops.convert_to_tensor(weight) for weight in layer.weights]
    direction = [np.cos(1 + np.arange(x.shape.num_elements())).reshape(x.shape) for x in first]
    upstream = np.random.default_rng(2).normal(size=(1, 3, length, length))

    def answer(step):
        weights = [x + step * y for x, y in zip(first, direction, strict=True)]
        bias = layer.stateless_call(weights, [], np.zeros((1, length, 4)))[0]
        return tensorflow.reduce_sum(bias * upstream)

    step = tensorflow.constant(0.0, "float64")
    with tensorflow.GradientTape() as tape:
        tape.watch(step)
        found = tape.gradient(answer(step), step)
    tape = (answer(1e-6) - answer(-1e-6)) / 2e-6
    np.testing.assert_allclose(found, tape, rtol=1e-6)


@hypothesis.given(
    half=st.integers(2, 40), max_distance=st.integers(2, 3000), bidirectional=st.booleans()
)
@hypothesis.settings(max_examples=25)
def test_buckets_equal_the_logarithm_of_the_paper(half, max_distance, bidirectional):
    exact = half // 2
    hypothesis.assume(max_distance > exact)
    distances = np.concatenate([np.arange(-300, 301), [-max_distance, max_distance, 10**6]])
    num_buckets = 2 * half if bidirectional else half
    got = relative_buckets(distances, num_buckets, max_distance, bidirectional)
    for distance, bucket in zip(distances.tolist(), ops.convert_to_numpy(got), strict=True):
        m = abs(distance) if bidirectional else max(-distance, 0)
        wanted = {m}
        if m >= exact:
            steps = (half - exact) * math.log(m / exact) / math.log(max_distance / exact)
            # At a whole number of steps the logarithm's last bit decides; both sides are right.
            wanted = {min(half - 1, exact + math.floor(steps + e)) for e in (-1e-9, 1e-9)}
        if bidirectional and distance > 0:
            wanted = {bucket + half for bucket in wanted}
        assert bucket in wanted, (distance, bucket, wanted)
