"""What all attention layers share, seen through the plainest, and through those with a table."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.layers import (
    PlainSelfAttention,
    QKRMultiplicativeAttention,
    QKRPairwiseAttention,
    RelativePositionTable,
    UntiedPositionalAttention,
)
from keras_tupe.positions.bert_ad import FourTermAttention
from keras_tupe.positions.diet_rel import DistanceBiasAttention
from keras_tupe.positions.shaw import ShawAttention


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
    low = bias - 1e6  # a constant, which softmax ignores, and padding must stay out
    for mask, some, atol in (
        (is_real, bias, 1e-12),
        (is_real * 1, bias, 1e-12),
        (is_real, low, 1e-8),
    ):
        given = {"position_bias": some, "padding_mask": mask}
        got = ops.convert_to_numpy(layer.scores(x, **given))
        np.testing.assert_allclose(got, scores, atol=atol)
        assert (got[np.broadcast_to(~is_real[:, None, None], got.shape)] == 0).all()
        np.testing.assert_allclose(ops.convert_to_numpy(layer(x, **given)), out, atol=atol)


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
    out = ops.cast(layer(x, position_bias=bias), "float32")
    assert np.isfinite(ops.convert_to_numpy(out)).all()


def test_logits_are_scaled_for_their_terms_and_a_bias_is_not():
    bias, factor = np.random.normal(size=(1, 2, 7, 7)), {PlainSelfAttention: 1}
    query, key = np.random.normal(size=(2, 3, 7, 2, 5))
    for kind, terms in {**factor, UntiedPositionalAttention: 2, FourTermAttention: 4}.items():
        assert kind.num_terms == terms
        if terms < 4:
            logits = kind(2, 5, dtype="float64").all_logits(query, key, bias)
            expected = np.einsum("bthd,bshd->bhts", query, key) / np.sqrt(terms * 5) + bias
            np.testing.assert_allclose(ops.convert_to_numpy(logits), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "width"), [(QKRMultiplicativeAttention, 1), (QKRMultiplicativeAttention, 5),
    (QKRPairwiseAttention, 5), (ShawAttention, 5), (DistanceBiasAttention, 1)],
)  # fmt: skip
def test_a_position_bias_is_added_and_a_shared_table_does_what_an_own_one_does(kind, width):
    table = RelativePositionTable(3, width=width, untie_cls=True, dtype="float64")
    own, _ = attention_and_weights(kind=kind, position_table=table)
    sharing, _ = attention_and_weights(kind=kind)
    query, key = np.random.normal(size=(2, 3, 7, 2, 5))
    bias = np.random.normal(size=(1, 2, 7, 7))
    plain, biased = (ops.convert_to_numpy(own.all_logits(query, key, x)) for x in (None, bias))
    np.testing.assert_allclose(biased, plain + bias, atol=1e-12)
    shared = sharing.all_logits(query, key, None, table(np.zeros((1, 7, 11))))
    np.testing.assert_array_equal(ops.convert_to_numpy(shared), plain)


@keras.saving.register_keras_serializable(package="test_self_attention")
class Hinge(PlainSelfAttention):
    """scores_j = max(0, 1 + s_j - max s) by their sum."""

    def normalized(self, logits):
        kept = ops.maximum(1 + (logits - ops.max(logits, axis=-1, keepdims=True)), 0)
        return kept / ops.sum(kept, axis=-1, keepdims=True)


def hinge(logits):
    kept = np.maximum(1 + logits - logits.max(-1, keepdims=True), 0)
    return kept / kept.sum(-1, keepdims=True)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("length", [7, 530])  # long texts are made in blocks
def test_no_way_of_the_core_leaves_own_scores_out(length, window):
    given = {"attention_pattern": "sliding_window", "pattern_options": {"window": window}}
    layer, weights = attention_and_weights(kind=Hinge, **(given if window else {}))
    x, place = np.random.normal(size=(2, length, 11)), np.arange(length)
    is_near = np.abs(place - place[:, None]) <= (window or length)
    scores, out = reference(x, weights, np.where(is_near, 0, -np.inf), normalize=hinge)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.scores(x)), scores, atol=1e-12)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), out, atol=1e-12)
