"""Every position bias: what a layer must keep, its equation, long texts, half precision."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.layers import (
    CombinedPositionBias,
    PositionBias,
    RelativeBucketBias,
    UntiedPositionBias,
)
from keras_tupe.layers.attention.position_terms import matrix_of_parts
from keras_tupe.positions import oracle
from keras_tupe.positions.alibi import AlibiBias
from keras_tupe.positions.diet_abs import LowRankPositionBias
from keras_tupe.positions.fire import FireBias
from keras_tupe.positions.free_table import FreeTableBias
from keras_tupe.positions.kerple import KerpleBias
from keras_tupe.positions.sandwich import SandwichBias
from keras_tupe.positions.t5_low_rank import LowRankDistanceBias

NORMAL = keras.initializers.RandomNormal(0.3)
H, LONG = 2, 600


def slopes(w, h, i, j):
    return -np.exp(w["log_slopes"][(j > i) * 1, h]) * abs(j - i)


def kernels(w, h, i, j):
    r_1, r_2 = np.log1p(np.exp(w["magnitude"][h])), 2 / (1 + np.exp(-w["growth"][h]))
    return -r_1 * np.abs(j - i) ** r_2


def logarithms(w, h, i, j):
    r_1, r_2 = np.log1p(np.exp(w["magnitude"][h])), np.log1p(np.exp(w["growth"][h]))
    return -r_1 * np.log1p(r_2 * abs(j - i))


def waves(w, h, i, j):
    found = np.cos((j - i) / 10000 ** (2 / 6)) + np.cos((j - i) / 10000 ** (4 / 6))
    return (found + np.cos((j - i) / 10000) - 3) * H / (8 * (h + 1))


def network(w, h, i, j):
    c, threshold = 0.1 * np.exp(w["log_factors"][0, 0]), 3.5 * np.exp(w["log_factors"][1, 0])
    share = np.log1p(c * abs(j - i))
    share /= np.log1p(c * np.maximum(threshold, np.maximum(i, j))) + 1e-6
    hidden = np.maximum(w["hidden"][0] * share[..., None] + w["hidden"][1], 0)
    return hidden @ w["output_kernel"][h]


def entries(w, h, i, j):
    return w["embeddings"][i, j, h]


def factors(w, h, i, j):
    return np.sum(w["query_embeddings"][i, h] * w["key_embeddings"][j, h], -1)


def products(w, h, i, j):
    row = w["embeddings"][np.clip(j - i, -3, 3) + 3]
    return np.sum((row @ w["query_kernel"][:, h]) * (row @ w["key_kernel"][:, h]), -1)


def buckets(is_causal):
    def bucket(distance):
        return oracle.bucket(distance, 8, 20, is_causal)

    return lambda w, h, i, j: w["embeddings"][np.vectorize(bucket)(j - i), h]


def correlations(w, h, i, j):
    rows = w["projection/embeddings"]
    rows = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-3)
    rows = rows * w["projection/layer_norm/gamma"] + w["projection/layer_norm/beta"]
    query, key = (
        rows @ w[f"projection/{side}/kernel"][:, h] + w[f"projection/{side}/bias"][h]
        for side in ("query", "key")
    )
    return np.sum(query[i] * key[j], -1) / np.sqrt(2 * 5)


SIZES = {"key_dim": 5, "initializer": NORMAL}
TABLE = {"max_sequence_length": LONG}
# class, its arguments but the heads, weights, the equation, whether nothing on the way is rounded
BIASES = [
    (AlibiBias, {}, 0, lambda w, h, i, j: -(0.0625 ** (h + 1)) * abs(j - i), True),
    (AlibiBias, {"learned": True, "sides": 2}, 1, slopes, False),
    (KerpleBias, {"kernel": "power", "initializer": NORMAL}, 2, kernels, False),
    (KerpleBias, {"initializer": NORMAL}, 2, logarithms, False),
    (SandwichBias, {"width": 6}, 0, waves, True),
    (FireBias, {"threshold": 3.5, "width": 5}, 3, network, False),
    (FreeTableBias, {**TABLE, "initializer": "ones"}, 1, entries, True),
    (LowRankPositionBias, {**TABLE, "rank": 3, "initializer": NORMAL}, 2, factors, False),
    (LowRankDistanceBias, {**SIZES, "max_distance": 3}, 3, products, False),
    (RelativeBucketBias, {"num_buckets": 8, "max_distance": 20, "initializer": NORMAL}, 1,
     buckets(False), True),
    (RelativeBucketBias, {"num_buckets": 8, "max_distance": 20, "bidirectional": False}, 1,
     buckets(True), True),
    (UntiedPositionBias, {**SIZES, **TABLE, "cls_theta": False, "use_bias": True, "epsilon": 1e-3},
     7, correlations, True),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "given", "num_weights", "equation", "is_exact"), BIASES)
def test_layer_contract(layer, given, num_weights, equation, is_exact, tmp_path):
    run_layer_contract(
        layer,
        lambda dtype: {"num_heads": H, **given},
        {"hidden_states": np.zeros((3, 7, 11), "float32")},
        output_shape=(1, H, 7, 7),
        num_weights=num_weights,
        folder=tmp_path,
        at_least_float32=True,
        is_position_term=is_exact,
    )


@pytest.mark.parametrize(("layer", "given", "num_weights", "equation", "is_exact"), BIASES)
def test_the_bias_is_its_equation_of_short_and_long_texts_whatever_the_words(
    layer, given, num_weights, equation, is_exact
):
    layer = scrambled(layer(H, **given, dtype="float64", name="b"), (1, 7, 11))
    weights = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in layer.weights}
    for length in (1, 2, 7, LONG):
        bias = ops.convert_to_numpy(layer(np.random.normal(size=(2, length, 11))))
        assert bias.shape == (1, H, length, length)
        i, j = np.ogrid[:length, :length]
        for h in range(H):
            wanted = np.broadcast_to(equation(weights, h, i, j), (length, length))
            np.testing.assert_allclose(bias[0, h], wanted, rtol=0, atol=in_float64(1e-11))
        parts = layer.bias_parts(np.zeros((1, length, 11)))
        assert tuple(parts) == layer.kinds
        for name, part in parts.items():
            last = {"distances": (2 * length,), "matrix": (length, length)}
            assert part.shape == (H, *last.get(name, (length, layer.rank)))
        again = ops.convert_to_numpy(matrix_of_parts(parts, length))
        np.testing.assert_array_equal(again, bias)


def scrambled(layer, shape):
    layer.build(shape)
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


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


def test_published_slopes():
    def slopes(num_heads, **more):
        bias = AlibiBias(num_heads, **more, dtype="float64")(np.zeros((1, 2, 4)))
        return -ops.convert_to_numpy(bias)[0]

    np.testing.assert_allclose(slopes(8)[:, 0, 1], 0.5 ** np.arange(1, 9), rtol=in_float64(1e-15))
    np.testing.assert_allclose(slopes(1)[:, 0, 1], [1 / 256])
    three = [2**-4, 2**-8, 2**-2]  # those of two heads, then the first of four
    np.testing.assert_allclose(slopes(3)[:, 0, 1], three)
    twelve = [*0.5 ** np.arange(1, 9), *0.5 ** np.arange(0.5, 4.5)]
    np.testing.assert_allclose(slopes(12)[:, 0, 1], twelve, rtol=1e-6)
    for learned in (False, True):  # mirrored at first, and what is learned begins there
        both = slopes(4, learned=learned, sides=2)
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


@pytest.mark.parametrize("length", [60, 130])  # within a block of queries; two blocks and a part
def test_gradients_of_fire_equal_numerical_ones(length, tensorflow):
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


def test_theta_is_its_equation_and_needs_its_vectors():
    layer = scrambled(UntiedPositionBias(H, 5, 11, use_bias=True, epsilon=1e-3, dtype="float64",
                                         name="b"), (1, 7, 10))  # fmt: skip
    weights = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in layer.weights}
    weights["projection/embeddings"] = weights["cls_embeddings"]
    k = np.arange(2)
    wanted = np.stack([correlations(weights, h, k, k) for h in range(H)], axis=1)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.theta()), wanted, atol=in_float64(1e-11))
    with pytest.raises(ValueError, match=r"`cls_theta=True`\. Received: cls_theta=False"):
        UntiedPositionBias(H, 5, 11, cls_theta=False).theta()


def test_vectors_and_kernels_are_drawn_apart():
    layer = UntiedPositionBias(1, 5, 5, initializer="random_normal")
    layer.build((None, None, 5))
    drawn = [w for w in layer.weights if not w.path.endswith(("gamma", "beta"))]
    rows = [ops.convert_to_numpy(w).reshape(-1)[:5] for w in drawn]
    assert len({tuple(row) for row in rows}) == len(rows) == 4


def test_a_bias_without_parts_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match=r"must define `parts\(length\)`"):
        PositionBias(2).parts(3)


@pytest.mark.parametrize(
    ("layer", "given", "message"),
    [
        *(
            (RelativeBucketBias, {"num_heads": x}, "`num_heads` must be a positive integer")
            for x in (0, -1, 2.0, "2", None, True)
        ),
        *(
            (RelativeBucketBias, {"num_buckets": x}, f"even integer >= 4.*num_buckets={x!r}")
            for x in (0, 2, 7, 8.0, "8")
        ),
        *(
            (RelativeBucketBias, {"max_distance": x}, f"an integer above 8.*max_distance={x!r}")
            for x in (8, 0, 128.0, None)
        ),
        (RelativeBucketBias, {"num_buckets": 1, "bidirectional": False}, "an integer >= 2"),
        (KerpleBias, {"kernel": "exp"}, r"one of \['log', 'power'\].*kernel='exp'"),
        (SandwichBias, {"width": 5}, "even integer >= 2.*width=5"),
        (SandwichBias, {"heads": [-1]}, r"from 0 to 1.*heads=\[-1\]"),
        (SandwichBias, {"heads": [0, 2]}, r"from 0 to 1.*heads=\[0, 2\]"),
        (AlibiBias, {"heads": [0.5]}, r"from 0 to 1.*heads=\[0.5\]"),
        (AlibiBias, {"sides": 3}, "from 1 to 2.*sides=3"),
        (AlibiBias, {"sides": True}, "from 1 to 2.*sides=True"),
        (FireBias, {"threshold": 0}, "a number above 0.*threshold=0"),
        (FireBias, {"threshold": True}, "a number above 0.*threshold=True"),
        (FireBias, {"threshold": 9, "width": 0}, "positive integer.*width=0"),
        (FreeTableBias, {"max_sequence_length": 0}, "positive integer.*max_sequence_length=0"),
        (LowRankPositionBias, {**TABLE, "rank": 0}, "positive integer.*rank=0"),
        (LowRankDistanceBias, {"key_dim": 0}, "positive integer.*key_dim=0"),
        (UntiedPositionBias, {**TABLE, "key_dim": 0}, "positive integer.*key_dim=0"),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(layer, given, message):
    with pytest.raises(ValueError, match=message):
        layer(**{"num_heads": 2, **given})
    RelativeBucketBias(2, num_buckets=3, bidirectional=False)


@pytest.mark.parametrize("layer", [FreeTableBias, LowRankPositionBias, UntiedPositionBias])
def test_longer_than_the_table_is_refused_by_a_sentence(layer):
    given = {"max_sequence_length": 11, **({"key_dim": 5} if layer is UntiedPositionBias else {})}
    message = r"max_sequence_length=11 tokens(.|\n)*Truncate(.|\n)*Received: sequence length=12"
    combined = CombinedPositionBias([layer(2, **given), AlibiBias(2)])
    for x in (np.zeros((1, 12, 10)), keras.Input((12, 10))):
        for refusing in (layer(2, **given), combined):
            with pytest.raises(ValueError, match=message):
                refusing(x)
        with pytest.raises(ValueError, match=message):
            combined(x, as_parts=True)
