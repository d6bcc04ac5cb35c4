"""Layers' own gradients in training: values and gradients are those of the plain equations."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.layers import Dropout, MaskedLMHead, TokenEmbedding, gelu
from keras_tupe.layers._compiled import compiled, one_pass, one_pass_steps
from keras_tupe.layers._dense import Dense
from keras_tupe.layers._normalization import LayerNormalization

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="own gradients are TensorFlow's alone"
)
both_ways = pytest.mark.parametrize("compiles", [False, True])
SHAPE = (3, 7, 10)


def random(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def answers_and_gradients(function, arrays, upstream, compiles=False, dtype="float64"):
    """Returns, as float64 arrays, what a function answers and the gradients of its arguments."""
    import tensorflow as tf

    tensors = [tf.cast(array, dtype) for array in arrays]

    @tf.function(autograph=False)
    def run(*tensors):
        with one_pass_steps(compiles), tf.GradientTape() as tape:
            tape.watch(tensors)
            out = function(*tensors)
            return out, tape.gradient(out, tensors, tf.cast(upstream, out.dtype))

    out, gradients = run(*tensors)
    return [tf.cast(x, "float64").numpy() for x in (out, *gradients)]


def layer_with_weights(layer, shape):
    layer.build(shape)
    for number, weight in enumerate(layer.weights):
        weight.assign(random(*weight.shape, seed=number + 5))
    return layer


def weights_gradients(layer, x, upstream, training, compiles=False):
    import tensorflow as tf

    with one_pass_steps(compiles), tf.GradientTape() as tape:
        out = layer(x, training=training)
        loss = tf.reduce_sum(tf.cast(out, "float64") * upstream)
    values = [weight.value for weight in layer.trainable_weights]
    return [np.array(tf.cast(g, "float64")) for g in tape.gradient(loss, values)]


def compiled_functions(function, *specs, compiles=True):
    import tensorflow as tf

    with one_pass_steps(compiles):
        graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
    return str(graph.as_graph_def()).count("_XlaMustCompile")


@both_ways
def test_the_gradient_of_gelu_in_training_is_that_of_the_equation(compiles):
    layer = Dense(10, activation=gelu, dtype="float64")
    layer.build((None, 10))
    layer.kernel.assign(np.eye(10))
    x, upstream = 2 * random(*SHAPE), random(*SHAPE, seed=2)
    found = answers_and_gradients(lambda x: layer(x, training=True), [x], upstream, compiles)
    below = (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(found[0], x * below, atol=1e-12)
    np.testing.assert_allclose(found[1], upstream * (below + x * density), atol=1e-12)


@both_ways
@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
def test_layer_normalization_and_its_gradients_are_keras_s(epsilon, compiles):
    x, upstream = 3 * random(*SHAPE) + 1, random(*SHAPE, seed=2)
    ours = LayerNormalization(epsilon=epsilon, dtype="float64")
    theirs = keras.layers.LayerNormalization(epsilon=epsilon, dtype="float64")
    found = []
    for layer, way in ((layer_with_weights(ours, SHAPE), compiles), (theirs, False)):
        if layer is theirs:
            layer_with_weights(theirs, SHAPE)
        kwargs = {"training": True} if layer is ours else {}
        found.append(answers_and_gradients(lambda x: layer(x, **kwargs), [x], upstream, way))  # noqa: B023
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, atol=1e-12)
    ours_by_weight = weights_gradients(ours, x, upstream, True, compiles)
    for mine, wanted in zip(
        ours_by_weight, weights_gradients(ours, x, upstream, False), strict=True
    ):
        np.testing.assert_allclose(mine, wanted, atol=1e-12)
    assert [w.path.split("/")[-1] for w in ours.weights] == ["gamma", "beta"]
    assert type(ours).__name__ == type(theirs).__name__, "saved files find layers by this name"


@both_ways
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_over_rows_are_added_up_in_float32_under_half_precision(dtype, compiles):
    layer = layer_with_weights(LayerNormalization(dtype=f"mixed_{dtype}"), (None, 64))
    exact = layer_with_weights(LayerNormalization(dtype="float64"), (None, 64))
    x = np.array(ops.cast(random(2048, 64), dtype), "float64")
    upstream = np.array(ops.cast(random(2048, 64, seed=2) + 0.1, dtype), "float64")
    found = weights_gradients(layer, ops.cast(x, dtype), upstream, True, compiles)
    for mine, wanted in zip(found, weights_gradients(exact, x, upstream, False), strict=True):
        assert np.linalg.norm(mine - wanted) <= 1e-3 * np.linalg.norm(wanted)


@both_ways
def test_half_precision_is_rounded_once_in_a_pass(compiles):
    x = np.array(ops.cast(random(50, 40), "bfloat16"), "float64")
    upstream = np.array(ops.cast(random(50, 40, seed=2), "bfloat16"), "float64")
    dense = Dense(40, activation=gelu, dtype="bfloat16")
    dense.build((None, 40))
    dense.kernel.assign(np.eye(40))
    (out, gradient) = answers_and_gradients(
        lambda x: dense(x, training=True), [x], upstream, compiles, "bfloat16"
    )
    below = (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    slope = below + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(out, x * below, rtol=2**-8)
    np.testing.assert_allclose(gradient, upstream * slope, rtol=2**-7, atol=1e-5)


@both_ways
def test_the_gradient_of_dropout_is_its_own_mask(compiles):
    x, residual, upstream = random(*SHAPE) + 9, random(*SHAPE, seed=2), random(*SHAPE, seed=3)
    layer, twin = (Dropout(0.25, seed=3, dtype="float64") for _ in range(2))
    keep, gradient = answers_and_gradients(
        lambda x: layer(x, training=True), [x], upstream, compiles
    )
    np.testing.assert_allclose(keep, x * (keep != 0) / 0.75, atol=1e-12)
    assert 0 < (keep == 0).mean() < 0.5
    np.testing.assert_allclose(gradient, upstream * (keep != 0) / 0.75, atol=1e-12)
    found = answers_and_gradients(
        lambda r, x: twin.added(r, x, training=True), [residual, x], upstream, compiles
    )
    for mine, wanted in zip(found, (residual + keep, upstream, gradient), strict=True):
        np.testing.assert_allclose(mine, wanted, atol=1e-12)


def test_a_residual_is_added_where_nothing_is_dropped():
    x, residual = random(*SHAPE), random(*SHAPE, seed=2)
    for layer, training in (
        (Dropout(0.5, dtype="float64"), False),
        (Dropout(0.0, dtype="float64"), True),
    ):
        np.testing.assert_allclose(layer.added(residual, x, training=training), residual + x)


@both_ways
@pytest.mark.parametrize("policy", ["float64", "mixed_bfloat16"])
def test_logits_in_training_are_those_of_the_head(policy, compiles):
    head = MaskedLMHead(TokenEmbedding(13, 10, dtype=policy, name="e"), dtype=policy, name="h")
    head = layer_with_weights(head, (None, None, 10))
    positions = np.array([[1, 2, 0], [0, 6, 6], [5, 4, 3]])
    x, upstream = random(*SHAPE), random(3, 3, 13, seed=2)

    def run(training, compiles=False):
        import tensorflow as tf

        inputs = tf.cast(x, head.compute_dtype)
        with one_pass_steps(compiles), tf.GradientTape() as tape:
            tape.watch(inputs)
            out = head(inputs, mask_positions=positions, training=training)
            loss = tf.reduce_sum(tf.cast(out, "float64") * upstream)
        by = [inputs, *(weight.value for weight in head.trainable_weights)]
        return [np.array(tf.cast(a, "float64")) for a in (out, *tape.gradient(loss, by))]

    tolerance = 1e-12 if policy == "float64" else 2e-2  # of the largest
    for mine, wanted in zip(run(True, compiles), run(False), strict=True):
        np.testing.assert_allclose(mine, wanted, atol=tolerance * np.abs(wanted).max())


def test_only_steps_of_known_shapes_are_compiled_and_only_where_it_is_said():
    import tensorflow as tf

    @one_pass
    def twice(x):
        return x * 2

    known, unknown = tf.TensorSpec((3, 5)), tf.TensorSpec((None, 5))
    assert compiled_functions(twice, known) > 0
    assert compiled_functions(twice, unknown) == 0
    assert compiled_functions(twice, known, compiles=False) == 0


def test_a_graph_of_unknown_lengths_is_not_taken_for_known_ones(tensorflow):
    doubled = compiled(lambda x: x + x)

    def output_shape(length):
        spec = tensorflow.TensorSpec((2, length))
        graph = tensorflow.function(doubled).get_concrete_function(spec)
        return tuple(graph.output_shapes)

    assert [output_shape(length) for length in (None, 5, None, 6)] == [
        (2, length) for length in (None, 5, None, 6)
    ]


def test_graphs_to_be_served_have_no_own_gradients():
    import tensorflow as tf

    layer = layer_with_weights(LayerNormalization(), (None, 10))
    dense = Dense(10, activation=gelu)
    for training, has_some in ((True, True), (False, False), (None, False)):
        graph = tf.function(lambda x: dense(layer(x, training=training), training=training))  # noqa: B023
        operations = graph.get_concrete_function(tf.TensorSpec((3, 10))).graph.get_operations()
        assert any(o.type == "IdentityN" for o in operations) is has_some
