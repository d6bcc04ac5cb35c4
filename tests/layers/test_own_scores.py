"""Attention whose scores are no softmax, or whose keys are projected as its queries are."""

import keras
import numpy as np
import pytest
from generation_cases import causal_lm, logits_of
from keras import ops
from position_cases import Case, inputs, random_ids
from tolerances import in_float64

from keras_tupe import TupeBackbone, attention_patterns, positions
from keras_tupe.layers import AbstractSelfAttention, PlainSelfAttention
from keras_tupe.layers.attention.fused import fused_attention
from keras_tupe.positions import PositionMethod, attention
from keras_tupe.trunk.steps import Steps

HEADS, KEY_DIM, WIDTH = 2, 5, 10
WINDOW = {"attention_pattern": "sliding_window"}
OWN_GLOBALS = {"window": 2, "num_global": 2, "separate_global": True}


@keras.saving.register_keras_serializable(package="test_own_scores")
class Hinge(PlainSelfAttention):
    """scores_j = max(0, 1 + s_j - max s) by their sum."""

    def normalized(self, logits):
        kept = ops.maximum(1 + (logits - ops.max(logits, axis=-1, keepdims=True)), 0)
        return kept / ops.sum(kept, axis=-1, keepdims=True)


@keras.saving.register_keras_serializable(package="test_own_scores")
class OneProjection(PlainSelfAttention):
    """s_ij = q_i . q_j / sqrt(d)."""

    shares_projection = True


def hinge(logits):
    kept = np.maximum(1 + logits - logits.max(-1, keepdims=True), 0)
    return kept / kept.sum(-1, keepdims=True)


def softmax(logits):
    found = np.exp(logits - logits.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


def layer_of(kind, length, **kwargs):
    """Returns a layer with scrambled weights, its input and these weights by name."""
    layer, rng = kind(HEADS, KEY_DIM, dtype="float64", **kwargs), np.random.default_rng(length)
    x = rng.normal(size=(2, length, WIDTH))
    layer.build(x.shape)
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.4, size=weight.shape))
    return layer, x, {weight.path: ops.convert_to_numpy(weight) for weight in layer.weights}


def projected(x, weights, name):
    (prefix,) = {path.rpartition(f"{name}/kernel")[0] for path in weights if f"/{name}/k" in path}
    kernel, bias = (weights[f"{prefix}{name}/{part}"] for part in ("kernel", "bias"))
    return np.einsum("btm,mhd->bhtd", x, kernel) + bias[:, None]


def expected(x, weights, normalize, names=("query", "key", "value"), allowed=True):
    """Returns scores, and the answer before the output projection, in NumPy."""
    query, key, value = (projected(x, weights, name) for name in names)
    logits = query @ np.swapaxes(key, -1, -2) / np.sqrt(KEY_DIM)
    scores = normalize(np.where(allowed, logits, -np.inf))
    return scores, scores @ value


def output(context, weights):
    (kernel,) = (value for path, value in weights.items() if path.endswith("output/kernel"))
    (bias,) = (value for path, value in weights.items() if path.endswith("output/bias"))
    return np.einsum("bhtd,hdm->btm", context, kernel) + bias


def allowed_by(pattern, options, length):
    options = attention_patterns.get(pattern).resolve(options)
    tell = attention_patterns.get(pattern).allowed
    tokens = range(length)
    return np.array([[tell(i, j, length, 0, options) for j in tokens] for i in tokens])


@pytest.mark.parametrize(
    ("length", "window"),
    [(1, None), (7, 3), (530, None), (530, 3)],  # softmax makes no 530 x 530 at once
)
def test_no_way_of_the_core_leaves_own_scores_out(length, window):
    given = {**WINDOW, "pattern_options": {"window": window}} if window else {}
    layer, x, weights = layer_of(Hinge, length, **given)
    allowed = allowed_by("sliding_window", {"window": window}, length) if window else True
    scores, context = expected(x, weights, hinge, allowed=allowed)
    near = {"rtol": 0, "atol": in_float64(1e-12)}
    np.testing.assert_allclose(ops.convert_to_numpy(layer.scores(x)), scores, **near)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), output(context, weights), **near)
    if length > 7:
        assert 0.1 < (scores[:, :, allowed] == 0).mean() < 0.99


def test_global_tokens_have_own_scores_too():
    layer, x, weights = layer_of(Hinge, 11, **WINDOW, pattern_options=OWN_GLOBALS)
    rest = {path: value for path, value in weights.items() if "global" not in path}
    allowed = allowed_by("sliding_window", OWN_GLOBALS, 11)
    _, context = expected(x, rest, hinge, allowed=allowed)
    names = [f"global_{name}" for name in ("query", "key", "value")]
    _, of_globals = expected(x, weights, hinge, names)
    context[:, :, :2] = of_globals[:, :, :2]
    got = ops.convert_to_numpy(layer(x))
    np.testing.assert_allclose(got, output(context, weights), rtol=0, atol=in_float64(1e-12))


def test_padding_gets_nothing_and_dropout_keeps_the_mean():
    layer, x, weights = layer_of(Hinge, 7, dropout=0.4)
    mask = np.array([[1] * 5 + [0] * 2, [0] * 7])
    scores = ops.convert_to_numpy(layer.scores(x, padding_mask=mask))
    assert (scores[0, :, :, 5:] == 0).all()
    assert (scores[1] == 0).all()
    assert np.isfinite(ops.convert_to_numpy(layer(x, padding_mask=mask))).all()
    wanted = output(expected(x, weights, hinge)[1], weights)
    draws = np.stack([ops.convert_to_numpy(layer(x, training=True)) for _ in range(100)])
    assert np.abs(draws[0] - wanted).max() > 0.01
    assert np.abs(draws.mean(0) - wanted).max() < 6 * draws.std(0).max() / 10


def test_fused_attention_refuses_own_scores():
    layer, x, _ = layer_of(Hinge, 7)
    message = "JAX's" if keras.backend.backend() != "jax" else "no softmax of its logits"
    with (
        fused_attention("xla"),
        pytest.raises(ValueError, match=f"{message}(.|\n)*Received"),
    ):
        layer(x)


def test_keys_may_be_projected_as_queries_are():
    layer, x, weights = layer_of(OneProjection, 7)
    assert layer.key_dense is layer.query_dense
    assert len(weights) == len(layer.weights) == 6
    scores, context = expected(x, weights, softmax, ("query", "query", "value"))
    near = {"rtol": 0, "atol": in_float64(1e-12)}
    np.testing.assert_allclose(ops.convert_to_numpy(layer.scores(x)), scores, **near)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), output(context, weights), **near)
    whole, *_ = layer_of(OneProjection, 7, **WINDOW, pattern_options=OWN_GLOBALS)
    assert len(whole.weights) == 10


def method(kind):
    """Returns the record of a method with the attention."""
    return PositionMethod(
        summary="a method of this test",
        source="none",
        equation="s",
        logits_oracle=positions.get("none").logits_oracle,
        attention=lambda dims, options: attention(kind, dims),
    )


@pytest.mark.parametrize("kind", [Hinge, OneProjection])
def test_the_next_token_of_a_text_sees_as_the_whole_text(kind, monkeypatch):
    monkeypatch.setitem(positions.METHODS, "own_scores", method(kind))
    model, ids = causal_lm(Case("own_scores"), num_layers=1), random_ids(2, 6).astype("int32")
    steps, tokens = Steps(model.backbone.trunk, 6), ops.convert_to_tensor(ids)
    x, caches = steps.prefill(tokens[:, :3])
    found = [model.logits(x)]
    for index in (3, 4, 5):
        x, caches = steps.step(tokens[:, index : index + 1], caches, index)
        found.append(model.logits(x))
    got = ops.convert_to_numpy(ops.concatenate(found, axis=1))
    np.testing.assert_allclose(got, logits_of(model, ids), rtol=0, atol=in_float64(1e-12))


def test_a_preset_with_fewer_projections_is_not_refused_for_its_size(monkeypatch, tmp_path):
    monkeypatch.setitem(positions.METHODS, "own_scores", method(OneProjection))
    model = TupeBackbone(30, 2, 2, 64, 16, position="own_scores", max_sequence_length=8)
    model.save_to_preset(str(tmp_path))
    loaded = TupeBackbone.from_preset(str(tmp_path))
    given = inputs(random_ids(2, 7))
    got, wanted = (ops.convert_to_numpy(one(given)["sequence_output"]) for one in (loaded, model))
    np.testing.assert_array_equal(got, wanted)


def test_what_overrides_nothing_has_no_own_scores():
    assert PlainSelfAttention(HEADS, KEY_DIM).own_normalize is None
    assert not AbstractSelfAttention.shares_projection
