"""What all attention layers share, seen through the plainest of them."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import PlainSelfAttention, UntiedPositionalAttention
from keras_tupe.positions.bert_ad import FourTermAttention


def attention_and_weights(dtype="float64", scale=0.5, kind=PlainSelfAttention, **kwargs):
    """Returns a layer with scrambled weights, and these by name."""
    layer = kind(num_heads=2, key_dim=5, dtype=dtype, name="a", **kwargs)
    layer.build((None, None, 11))
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(scale=scale, size=weight.shape))
    weights = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in layer.weights}
    return layer, weights


def softmax(logits):
    scores = np.exp(logits - logits.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def reference(x, weights, bias=0.0, is_real=None, normalize=softmax):
    """Multi-head attention as Vaswani et al. print it: scores and output, float64."""
    query, key, value = (
        np.einsum("btm,mhd->bhtd", x, weights[f"{name}/kernel"])
        + weights[f"{name}/bias"][None, :, None]
        for name in ("query", "key", "value")
    )
    logits = query @ key.transpose(0, 1, 3, 2) / np.sqrt(5) + bias
    if is_real is not None:
        logits = np.where(is_real[:, None, None, :], logits, -np.inf)
    scores = normalize(logits)
    out = np.einsum("bhtd,hdm->btm", scores @ value, weights["output/kernel"])
    return scores, out + weights["output/bias"]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_scores_and_output_equal_the_textbook(length):
    layer, weights = attention_and_weights()
    x = np.random.normal(size=(3, length, 11))
    bias = np.random.normal(size=(1, 2, length, length))
    is_real = np.random.uniform(size=(3, length)) < 0.6
    is_real[:, -1] = True
    scores, out = reference(x, weights, bias, is_real)
    given = {"position_bias": bias, "padding_mask": is_real}
    np.testing.assert_allclose(ops.convert_to_numpy(layer.scores(x, **given)), scores, atol=1e-12)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x, **given)), out, atol=1e-12)


def test_padded_keys_get_exactly_zero_and_integers_serve_as_mask():
    layer, _ = attention_and_weights()
    x = np.random.normal(size=(3, 7, 11))
    mask = (np.arange(7) < np.array([[7], [4], [1]])).astype("int32")
    scores = ops.convert_to_numpy(layer.scores(x, padding_mask=mask))
    assert (scores[:, :, :, :][np.broadcast_to(mask[:, None, None] == 0, scores.shape)] == 0).all()
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-12)
    np.testing.assert_array_equal(
        scores, ops.convert_to_numpy(layer.scores(x, padding_mask=mask.astype(bool)))
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("length", [1, 7])
def test_a_row_without_real_tokens_yields_the_output_bias(dtype, length):
    layer, weights = attention_and_weights(dtype)
    x = np.random.normal(size=(2, length, 11)).astype("float32")
    mask = np.array([[0] * length, [1] * length])
    scores = ops.convert_to_numpy(layer.scores(x, padding_mask=mask))
    assert (scores[0] == 0).all()
    out = ops.convert_to_numpy(ops.cast(layer(x, padding_mask=mask), "float64"))
    bias = np.broadcast_to(weights["output/bias"], out[0].shape)
    np.testing.assert_allclose(out[0], bias, rtol=1e-2)
    assert np.isfinite(out).all()


def test_padding_stays_out_however_low_the_logits_of_real_tokens_are():
    layer, _ = attention_and_weights()
    x = np.random.normal(size=(3, 7, 11))
    mask = (np.arange(7) < np.array([[7], [4], [1]])).astype("int32")
    low = np.full((1, 2, 7, 7), -1e6)  # a constant, which softmax ignores
    scores, lowered = (
        ops.convert_to_numpy(layer.scores(x, position_bias=bias, padding_mask=mask))
        for bias in (0 * low, low)
    )
    np.testing.assert_allclose(lowered, scores, atol=1e-8)


def test_a_row_without_real_tokens_has_a_finite_gradient():
    layer, _ = attention_and_weights("float32")
    x, mask = keras.Input((7, 11)), keras.Input((7,), dtype="int32")
    model = keras.Model([x, mask], layer(x, padding_mask=mask))
    model.compile(keras.optimizers.SGD(0.1), loss="mse", run_eagerly=True)
    data = np.random.normal(size=(2, 2, 7, 11)).astype("float32")
    model.train_on_batch([data[0], np.array([[1] * 7, [0] * 7])], data[1])
    for weight in layer.weights:
        assert np.isfinite(ops.convert_to_numpy(weight)).all(), weight.path


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16", "float16", "bfloat16"])
def test_logits_beyond_half_precision_stay_finite(dtype):
    layer, _ = attention_and_weights(dtype, scale=8.0)
    x = np.random.normal(size=(3, 7, 11)).astype("float32") * 8
    bias = np.random.normal(size=(1, 2, 7, 7)).astype("float32") * 1e6
    logits = layer.all_logits(layer.query_dense(x), layer.key_dense(x), bias)
    assert np.abs(ops.convert_to_numpy(logits)).max() > 65504, "the case is not extreme enough"
    scores = layer.scores(x, position_bias=bias)
    assert "float32" in str(scores.dtype)
    np.testing.assert_allclose(ops.convert_to_numpy(scores).sum(-1), 1, atol=1e-6)
    assert np.isfinite(
        ops.convert_to_numpy(ops.cast(layer(x, position_bias=bias), "float32"))
    ).all()


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_a_position_bias_is_not_rounded_to_half_precision(dtype):
    layer, _ = attention_and_weights(dtype)
    for weight in (layer.query_dense.kernel, layer.query_dense.bias):
        weight.assign(ops.zeros(weight.shape))  # no content: the scores show the bias alone
    x = np.zeros((1, 7, 11), "float32")
    bias = 1 + np.random.normal(size=(1, 2, 7, 7)).astype("float32") * 1e-4
    expected = np.exp(bias.astype("float64"))
    expected /= expected.sum(-1, keepdims=True)
    scores = ops.convert_to_numpy(layer.scores(x, position_bias=bias))
    np.testing.assert_allclose(scores, expected, atol=1e-7)


def test_logits_are_scaled_for_their_terms_and_a_bias_is_not():
    bias, factor = np.random.normal(size=(1, 2, 7, 7)), {PlainSelfAttention: 1}
    query, key = np.random.normal(size=(2, 3, 7, 2, 5))
    for kind, terms in {**factor, UntiedPositionalAttention: 2, FourTermAttention: 4}.items():
        assert kind.num_terms == terms
        if terms < 4:
            logits = kind(2, 5, dtype="float64").all_logits(query, key, bias)
            expected = np.einsum("bthd,bshd->bhts", query, key) / np.sqrt(terms * 5) + bias
            np.testing.assert_allclose(ops.convert_to_numpy(logits), expected, atol=1e-12)


def test_untied_attention_needs_its_second_term():
    with pytest.raises(ValueError, match="Received: position_bias=None"):
        UntiedPositionalAttention(2, 5)(np.zeros((1, 3, 10)))
    with pytest.raises(ValueError, match=r"1 or batch, num_heads(.|\n)*Received: a position bias"):
        PlainSelfAttention(2, 5)(np.zeros((1, 3, 10)), position_bias=np.zeros((1, 2, 3, 4)))


@pytest.mark.parametrize("kind", [PlainSelfAttention, UntiedPositionalAttention])
def test_layer_contract(kind, tmp_path):
    rng = np.random.default_rng(0)
    given = {
        "hidden_states": rng.normal(size=(3, 7, 11)).astype("float32"),
        "position_bias": rng.normal(size=(1, 2, 7, 7)).astype("float32"),
    }
    run_layer_contract(
        kind,
        lambda dtype: {"num_heads": 2, "key_dim": 5, "dropout": 0.1},
        given,
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


@keras.saving.register_keras_serializable(package="test_self_attention")
class Hinge(PlainSelfAttention):
    """scores_j = max(0, 1 + s_j - max s) by their sum."""

    def normalized(self, logits):
        kept = ops.maximum(1 + (logits - ops.max(logits, axis=-1, keepdims=True)), 0)
        return kept / ops.sum(kept, axis=-1, keepdims=True)


@keras.saving.register_keras_serializable(package="test_self_attention")
class OneProjection(PlainSelfAttention):
    """s_ij = q_i . q_j / sqrt(d)."""

    shares_projection = True


def hinge(logits):
    kept = np.maximum(1 + logits - logits.max(-1, keepdims=True), 0)
    return kept / kept.sum(-1, keepdims=True)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("length", [1, 7, 530])  # long texts are made in blocks
def test_no_way_of_the_core_leaves_own_scores_out(length, window):
    given = {"attention_pattern": "sliding_window", "pattern_options": {"window": window}}
    layer, weights = attention_and_weights(kind=Hinge, **(given if window else {}))
    x, place = np.random.normal(size=(2, length, 11)), np.arange(length)
    is_near = np.abs(place - place[:, None]) <= (window or length)
    scores, out = reference(x, weights, np.where(is_near, 0, -np.inf), normalize=hinge)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.scores(x)), scores, atol=1e-12)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), out, atol=1e-12)


def test_keys_may_be_projected_as_queries_are():
    layer, weights = attention_and_weights(kind=OneProjection)
    assert layer.key_dense is layer.query_dense
    assert len(weights) == len(layer.weights) == 6
    weights |= {f"key/{x}": weights[f"query/{x}"] for x in ("kernel", "bias")}
    x = np.random.normal(size=(2, 7, 11))
    _, out = reference(x, weights)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), out, atol=1e-12)
    options = {"window": 2, "num_global": 2, "separate_global": True}
    given = {"attention_pattern": "sliding_window", "pattern_options": options}
    assert len(attention_and_weights(kind=OneProjection, **given)[0].weights) == 10


def test_dropout_acts_on_scores_in_training_only():
    layer, _ = attention_and_weights(dropout=0.5)
    x = np.random.normal(size=(3, 7, 11))
    still = ops.convert_to_numpy(layer(x))
    np.testing.assert_array_equal(still, ops.convert_to_numpy(layer(x, training=False)))
    first, second = (ops.convert_to_numpy(layer(x, training=True)) for _ in range(2))
    assert np.abs(first - still).max() > 1e-3
    assert np.abs(first - second).max() > 1e-3


def test_the_four_kernels_are_drawn_apart():
    layer = PlainSelfAttention(num_heads=1, key_dim=6, kernel_initializer="random_normal")
    layer.build((None, None, 6))
    kernels = [ops.convert_to_numpy(w) for w in layer.weights if w.path.endswith("kernel")]
    assert len(kernels) == 4
    for i, one in enumerate(kernels):
        for other in kernels[:i]:
            assert np.abs(one.reshape(-1) - other.reshape(-1)).max() > 1e-3


@pytest.mark.parametrize("name", ["num_heads", "key_dim"])
@pytest.mark.parametrize("value", [0, -2, 2.0, "2", None])
def test_impossible_sizes_are_refused(name, value):
    sizes = {"num_heads": 2, "key_dim": 4, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. Received: {name}="):
        PlainSelfAttention(**sizes)
