"""Blocks of encoders and decoders, and the attention to another sequence.

The equations of blocks are compared in whole encoders and in models of pairs.
"""

import math

import numpy as np
import pytest
from core_ways import go
from keras import ops
from position_cases import scramble
from tolerances import in_float64

from keras_tupe.layers import CrossAttention, DecoderBlock, EncoderBlock, PlainSelfAttention

MASK = np.array([[1] * 5, [1] * 3 + [0] * 2, [0, 1, 0, 1, 0]], "int32")
NAMES = {EncoderBlock: ("attention", "feedforward")}
NAMES[DecoderBlock] = ("attention", "cross_attention", "feedforward")
both_blocks = pytest.mark.parametrize("kind", NAMES)


def states(length, seed=0):
    return np.random.default_rng(seed).normal(size=(3, length, 11))


def block(kind, **kwargs):
    given = {"attention": PlainSelfAttention(2, 5, attention_pattern="causal", dtype="float64")}
    if kind is DecoderBlock:
        given["cross_attention"] = CrossAttention(2, 3, dtype="float64", name="cross_attention")
    made = kind(**given, intermediate_dim=13, dtype="float64", name="b", **kwargs)
    made.build((3, 7, 11))
    scramble(made.weights)
    return made


def encoder_of(kind):
    if kind is EncoderBlock:
        return {}
    return {"encoder_states": states(5, seed=1), "encoder_padding_mask": MASK}


@both_blocks
def test_some_positions_are_those_of_all(kind):
    made, where, given = block(kind), np.array([[0, 3], [6, 2], [1, 1]]), encoder_of(kind)
    whole = ops.convert_to_numpy(made(states(7), **given))
    wanted = np.take_along_axis(whole, where[..., None], axis=1)
    for training in (False, True):
        some = made(states(7), output_positions=where, training=training, **given)
        some = ops.convert_to_numpy(some)
        np.testing.assert_allclose(some, wanted, rtol=0, atol=in_float64(1e-11))


@both_blocks
def test_each_sublayer_has_its_dropout_and_draws_the_same_when_computed_again(kind):
    made, x, given = block(kind, dropout=0.5), states(7), encoder_of(kind)
    still = ops.convert_to_numpy(made(x, **given, training=False))
    dropouts = {name: getattr(made, f"{name}_dropout") for name in NAMES[kind]}
    for name in dropouts:
        found = []
        for made.remat in (False, True):
            for other, layer in dropouts.items():
                layer.rate = 0.5 if other == name else 0
                layer.seed_generator.state.assign([3, 4])
            found.append(ops.convert_to_numpy(made(x, **given, training=True)))
        assert np.abs(found[0] - still).max() > 1e-3
        np.testing.assert_allclose(*found, rtol=0, atol=in_float64(1e-12))


def across(**kwargs):
    layer = CrossAttention(2, 5, dtype="float64", **kwargs)
    layer.build((3, 7, 11), (3, 5, 11))
    scramble(layer.weights)
    return layer


def equation(layer, x, m, mask):
    w = {weight.path.partition("/")[2]: ops.convert_to_numpy(weight) for weight in layer.weights}
    query, key, value = (
        np.einsum("btm,mhd->bhtd", y, w[f"{name}/kernel"]) + w[f"{name}/bias"][:, None]
        for y, name in ((x, "query"), (m, "key"), (m, "value"))
    )
    scores = np.exp(query @ key.swapaxes(-1, -2) / math.sqrt(5)) * mask[:, None, None]
    context = scores / np.maximum(scores.sum(-1, keepdims=True), 1e-300) @ value
    return np.einsum("bhtd,hdm->btm", context, w["output/kernel"]) + w["output/bias"]


@pytest.mark.parametrize("way", ["whole", "blocks", "loop"])
def test_attention_to_a_source_equals_its_equation(way, monkeypatch):
    go(way, monkeypatch)
    layer, x, m, ones = across(), states(7), states(5, seed=1), np.ones_like(MASK)
    # the last has a source without a token
    for mask in (None, MASK, MASK.astype(bool), MASK * [[1], [0], [1]]):
        wanted = equation(layer, x, m, ones if mask is None else mask)
        got = ops.convert_to_numpy(layer(x, m, encoder_padding_mask=mask))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12))


def test_what_stands_in_the_padding_of_a_source_is_invisible_to_the_bit():
    layer, x, m = across(), states(7), states(5, seed=1)
    other = np.where(MASK[..., None], m, 100 * states(5, seed=2))
    one, same = (ops.convert_to_numpy(layer(x, y, encoder_padding_mask=MASK)) for y in (m, other))
    np.testing.assert_array_equal(one, same)


def test_keys_and_values_are_made_once_for_many_calls():
    layer, x, m = across(), states(7), states(5, seed=1)
    kept = layer.keys_and_values(m)
    assert [tuple(part.shape) for part in kept] == [(2, 3, 5, 5)] * 2
    wanted = ops.convert_to_numpy(layer(x, m, encoder_padding_mask=MASK))
    for i in range(7):  # each token on its own: it sees the source alone
        got = ops.convert_to_numpy(layer.attended(x[:, i : i + 1], kept, MASK))
        np.testing.assert_allclose(got[:, 0], wanted[:, i], rtol=0, atol=in_float64(1e-12))


MEMORY = {"attention_pattern": "causal", "memory_length": 3}


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [(PlainSelfAttention, {}), (PlainSelfAttention, MEMORY), (CrossAttention, {})],
)
def test_scores_are_dropped_in_training_only(kind, kwargs):
    layer = kind(2, 5, dropout=0.5, dtype="float64", **kwargs)
    given = (states(7), states(5, seed=1))[: 2 if kind is CrossAttention else 1]
    still, same, one, other = (
        ops.convert_to_numpy(layer(*given, training=training))
        for training in (None, False, True, True)
    )
    np.testing.assert_array_equal(still, same)
    assert min(np.abs(one - still).max(), np.abs(one - other).max()) > 1e-3
