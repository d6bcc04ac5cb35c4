"""Dense layers, normalization, GELU, dropout: plain equations, and gradients of their own."""

import functools
import math

import keras
import numpy as np
import pytest
from keras import ops
from tolerances import in_float64

from keras_tupe import TupeBackbone
from keras_tupe._keras_private.layers import all_layers
from keras_tupe.layers import Dropout, MaskedLMHead, TokenEmbedding, gelu, gelu_approximate
from keras_tupe.layers._dense import Dense, HeadsDense
from keras_tupe.layers._normalization import LayerNormalization
from keras_tupe.layers._tracing import compiled, fused, tracing_for

SHAPE = (3, 7, 10)
HEADS = {"equation": "btm,mhd->bthd", "output_shape": (None, 2, 7), "bias_axes": "hd"}
MERGED = {"equation": "bthd,hdm->btm", "output_shape": (None, 13), "bias_axes": "m"}
own_gradients = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="own gradients are TensorFlow's alone"
)
both_ways = pytest.mark.parametrize("in_graph", [False, True])


def random(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def with_weights(layer, shape):
    layer.build(shape)
    for number, weight in enumerate(layer.weights):
        weight.assign(random(*weight.shape, seed=number + 5))
    return layer


def answers(function, arrays, upstream, weights=(), dtype="float64", in_graph=True):
    """Returns, in float64, what a function answers and its gradients by arguments and weights."""
    import tensorflow as tf

    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            out = function(*tensors)
            loss = tf.reduce_sum(tf.cast(out, "float64") * upstream)
        return out, *tape.gradient(loss, [*tensors, *(w.value for w in weights)])

    run = tf.function(run, autograph=False) if in_graph else run
    return [tf.cast(x, "float64").numpy() for x in run(*(tf.cast(a, dtype) for a in arrays))]


def assert_all_close(ours, wanted, atol=1e-12, **kwargs):
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=atol, **kwargs)


def of_gelu(x):
    below = (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    return x * below, below + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(
    ("ours", "theirs", "arguments", "shape"),
    [
        (Dense, keras.layers.Dense, {"units": 7, "activation": "tanh"}, SHAPE),
        (HeadsDense, keras.layers.EinsumDense, HEADS, SHAPE),
        (HeadsDense, keras.layers.EinsumDense, MERGED, (3, 5, 2, 7)),
    ],
)
def test_dense_layers_are_those_of_keras(ours, theirs, arguments, shape):
    layers = [with_weights(kind(**arguments, dtype="float64"), shape) for kind in (ours, theirs)]
    got, wanted = (ops.convert_to_numpy(layer(random(*shape))) for layer in layers)
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    assert [w.path.split("/")[-1] for w in layers[0].weights] == ["kernel", "bias"]


@own_gradients
def test_the_gradient_of_a_bias_is_right_in_half_precision():
    layer, x = Dense(64, dtype="mixed_bfloat16"), random(8, 256, 16)
    targets = np.array(ops.cast(random(8, 256, 64, seed=2) + 0.1, "bfloat16"), "float64")
    layer.build(x.shape)
    gradient = answers(layer, [x], targets, [layer.bias], "bfloat16", in_graph=False)[-1]
    wanted = targets.sum(axis=(0, 1))
    assert np.linalg.norm(gradient - wanted) <= 5e-3 * np.linalg.norm(wanted)


@pytest.mark.parametrize("position", ["data_dependent_alibi", "tupe_r"])
def test_quantized_layers_answer_alike_and_are_saved(position, tmp_path):
    model = TupeBackbone(101, 1, 2, 32, 64, position, max_sequence_length=32)
    for weight in model.trainable_weights:
        weight.assign_add(0.05 * keras.random.normal(weight.shape))
    ids = np.random.default_rng(0).integers(0, 101, (2, 16))
    given = {"token_ids": ids, "padding_mask": np.ones((2, 16), "int32")}
    answers = [model(given)]
    with pytest.warns(UserWarning, match="does not have a `quantize` method"):  # of other layers
        model.quantize("int8")
    dense = (keras.layers.Dense, keras.layers.EinsumDense)
    assert {x.quantization_mode for x in all_layers(model) if isinstance(x, dense)} == {"int8"}
    model.save(tmp_path / "int8.keras")
    answers += [one(given) for one in (model, keras.saving.load_model(tmp_path / "int8.keras"))]
    for name in ("sequence_output", "pooled_output"):
        before, after, again = (ops.convert_to_numpy(answer[name]) for answer in answers)
        np.testing.assert_array_equal(after, again)
        assert np.abs(after - before).max() > 1e-6, "something is quantized"
        assert (before * after).sum() > 0.999 * np.linalg.norm(before) * np.linalg.norm(after)


@pytest.mark.parametrize("function", [gelu, gelu_approximate])
def test_gelu_equals_its_equation_in_every_dtype(function):
    x = np.linspace(-6, 6, 101)
    wanted = of_gelu(x)[0]
    if function is gelu_approximate:
        wanted = x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        assert 1e-4 < np.abs(wanted - of_gelu(x)[0]).max() < 5e-4
    out = ops.convert_to_numpy(function(ops.convert_to_tensor(x, "float64")))
    np.testing.assert_allclose(out, wanted, atol=in_float64(1e-14))
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert keras.backend.standardize_dtype(function(ops.ones((2, 3), dtype)).dtype) == dtype
    name = f"keras_tupe>{function.__name__}"
    assert keras.saving.get_registered_object(name) is function


@own_gradients
@both_ways
@pytest.mark.parametrize("function", [gelu, gelu_approximate])
def test_the_gradient_of_gelu_is_that_of_its_equation(function, in_graph):
    layer = Dense(10, activation=function, dtype="float64")
    layer.build((None, 10))
    layer.kernel.assign(np.eye(10))
    x, upstream = 2 * random(*SHAPE), random(*SHAPE, seed=2)
    wanted = answers(function, [x], upstream)
    trained = functools.partial(layer, training=True)
    assert_all_close(answers(trained, [x], upstream, in_graph=in_graph), wanted)
    if function is gelu:
        value, slope = of_gelu(x)
        assert_all_close(wanted, (value, upstream * slope))


@own_gradients
@both_ways
def test_half_precision_is_rounded_once_in_a_pass(in_graph):
    x, upstream = (
        np.array(ops.cast(random(50, 40, seed=s), "bfloat16"), "float64") for s in (1, 2)
    )
    layer = Dense(40, activation=gelu, dtype="bfloat16")
    layer.build((None, 40))
    layer.kernel.assign(np.eye(40))
    trained = functools.partial(layer, training=True)
    out, gradient = answers(trained, [x], upstream, dtype="bfloat16", in_graph=in_graph)
    value, slope = of_gelu(x)
    np.testing.assert_allclose(out, value, rtol=2**-8)
    np.testing.assert_allclose(gradient, upstream * slope, rtol=2**-7, atol=1e-5)


@own_gradients
@both_ways
@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
def test_layer_normalization_and_its_gradients_are_keras_s(epsilon, in_graph):
    x, upstream = 3 * random(*SHAPE) + 1, random(*SHAPE, seed=2)
    classes = (LayerNormalization, keras.layers.LayerNormalization)
    ours, theirs = (with_weights(c(epsilon=epsilon, dtype="float64"), SHAPE) for c in classes)
    trained = functools.partial(ours, training=True)
    got = answers(trained, [x], upstream, ours.weights, in_graph=in_graph)
    assert_all_close(got, answers(theirs, [x], upstream, theirs.weights))
    assert [w.path.split("/")[-1] for w in ours.weights] == ["gamma", "beta"]
    assert type(ours).__name__ == type(theirs).__name__, "saved files find layers by this name"


@own_gradients
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_over_rows_are_added_up_in_float32_under_half_precision(dtype):
    policies = (f"mixed_{dtype}", "float64")
    half, exact = (with_weights(LayerNormalization(dtype=p), (None, 64)) for p in policies)
    x, upstream = (np.array(ops.cast(random(2048, 64, seed=s), dtype), "float64") for s in (1, 2))
    got = answers(functools.partial(half, training=True), [x], upstream, half.weights, dtype)[-2:]
    wanted = answers(exact, [x], upstream, exact.weights)[-2:]
    for one, other in zip(got, wanted, strict=True):
        assert np.linalg.norm(one - other) <= 1e-3 * np.linalg.norm(other)


@own_gradients
@both_ways
def test_the_gradient_of_dropout_is_its_own_mask(in_graph):
    x, upstream = random(*SHAPE) + 9, random(*SHAPE, seed=3)
    layer = functools.partial(Dropout(0.25, seed=3, dtype="float64"), training=True)
    out, gradient = answers(layer, [x], upstream, in_graph=in_graph)
    assert 0 < (out == 0).mean() < 0.5
    assert_all_close((out, gradient), [y * (out != 0) / 0.75 for y in (x, upstream)])


@own_gradients
@pytest.mark.parametrize("policy", ["float64", "mixed_bfloat16"])
def test_logits_in_training_are_those_of_the_head(policy):
    head = MaskedLMHead(TokenEmbedding(13, 10, dtype=policy, name="e"), dtype=policy, name="h")
    head = with_weights(head, (None, None, 10))
    where, upstream = np.array([[1, 2, 0], [0, 6, 6], [5, 4, 3]]), random(3, 3, 13, seed=2)

    def run(training):
        called = functools.partial(head, mask_positions=where, training=training)
        return answers(called, [random(*SHAPE)], upstream, head.weights, head.compute_dtype)

    tolerance = 1e-12 if policy == "float64" else 2e-2  # of the largest
    for mine, wanted in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(mine, wanted, atol=tolerance * np.abs(wanted).max())


@own_gradients
def test_only_graphs_of_known_shapes_are_compiled_and_none_for_converters(tensorflow):
    def graph(function, length):
        spec = tensorflow.TensorSpec((2, length))
        return tensorflow.function(function, autograph=False).get_concrete_function(spec)

    def is_compiled(function, length):
        return "_XlaMustCompile" in str(graph(function, length).graph.as_graph_def())

    assert is_compiled(fused(lambda x: x * 2), 5)
    assert not is_compiled(fused(lambda x: x * 2), None)
    doubled = compiled(lambda x: x + x)
    shapes = [tuple(graph(doubled, length).output_shapes) for length in (None, 5, None, 6)]
    assert shapes == [(2, None), (2, 5), (2, None), (2, 6)], "each has a graph of its own"
    with tracing_for("onnx"):
        assert not is_compiled(doubled, 5)


@own_gradients
def test_graphs_to_be_served_have_no_own_gradients(tensorflow):
    layer, dense = LayerNormalization(), Dense(10, activation=gelu)

    def operations(training):
        graph = tensorflow.function(lambda x: dense(layer(x, training=training), training=training))
        graph = graph.get_concrete_function(tensorflow.TensorSpec((3, 10))).graph
        return {operation.type for operation in graph.get_operations()}

    own = {"IdentityN", "PartitionedCall"}
    assert operations(True) & own
    assert not operations(False) & own
    with tracing_for("saved"):
        assert not operations(True) & own


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_share_dropped_is_the_rate_and_the_rest_is_scaled_up(rate, dtype):
    ones = np.ones((1001, 1001), "float32")  # an odd number of elements
    out = ops.convert_to_numpy(ops.cast(Dropout(rate, dtype=dtype)(ones, training=True), "float32"))
    low, high = np.unique(out)
    assert low == 0
    assert abs(high - 1 / (1 - rate)) < (1e-4 if dtype == "float32" else 5e-3)
    # Binomial bounds of a million draws, six standard deviations.
    assert abs((out == 0).mean() - rate) < 6 * np.sqrt(rate * (1 - rate) / ones.size)


def test_nothing_is_dropped_outside_training_or_at_rate_zero():
    x = random(5, 7).astype("float32")
    for rate, training in ((0.5, None), (0.5, False), (0.0, True)):
        np.testing.assert_array_equal(ops.convert_to_numpy(Dropout(rate)(x, training=training)), x)


def test_calls_differ_seeds_repeat_and_a_seed_generator_can_be_replaced():
    layer, twin, other = Dropout(0.5, seed=3), Dropout(0.5, seed=3), Dropout(0.5, seed=4)
    other.seed_generator = keras.random.SeedGenerator(3)
    first, second, *same = (
        ops.convert_to_numpy(one(np.ones((50, 50), "float32"), training=True))
        for one in (layer, layer, twin, other)
    )
    assert (first != second).any()
    for one in same:
        np.testing.assert_array_equal(first, one)
