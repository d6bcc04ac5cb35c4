"""Blocks of encoders and decoders are their equations."""

import math

import numpy as np
import pytest
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


def layer_norm(x, gamma, beta, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    return gamma * centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) + beta


@both_blocks
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize(("epsilon", "activation"), [(1e-5, "gelu"), (0.3, "gelu_approximate")])
def test_the_block_equals_its_equation(kind, normalize_first, epsilon, activation):
    options = {"layer_norm_epsilon": epsilon, "activation": activation}
    made = block(kind, normalize_first=normalize_first, **options)
    x, m = states(7), states(5, seed=1)
    weights = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in made.weights}

    def w(name):
        (found,) = (v for path, v in weights.items() if path.endswith(name) and path[0] == name[0])
        return found

    def attend(name, values, others, mask):
        part = getattr(made, name).name

        def heads(projection, of):
            kernel, bias = (weights[f"{part}/{projection}/{x}"] for x in ("kernel", "bias"))
            return np.einsum("btm,mhd->bhtd", of, kernel) + bias[None, :, None]

        query, key = heads("query", values), heads("key", others)
        scores = np.exp(query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])) * mask
        context = scores / scores.sum(-1, keepdims=True) @ heads("value", others)
        out = np.einsum("bhtd,hdm->btm", context, weights[f"{part}/output/kernel"])
        return out + weights[f"{part}/output/bias"]

    def feed_forward(values):
        inner = values @ w("feedforward_intermediate/kernel") + w("feedforward_intermediate/bias")
        if activation == "gelu":
            inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        else:
            tanh = np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3))
            inner = inner * (1 + tanh) / 2
        return inner @ w("feedforward_output/kernel") + w("feedforward_output/bias")

    sublayers = {
        "attention": lambda y: attend("attention", y, y, np.tril(np.ones((7, 7)))),
        "cross_attention": lambda y: attend("cross_attention", y, m, MASK[:, None, None]),
        "feedforward": feed_forward,
    }
    wanted = x
    for name in NAMES[kind]:

        def norm(y, name=f"{name}_layer_norm"):
            return layer_norm(y, w(f"{name}/gamma"), w(f"{name}/beta"), epsilon)

        if normalize_first:
            wanted = wanted + sublayers[name](norm(wanted))
        else:
            wanted = norm(wanted + sublayers[name](wanted))
    got = ops.convert_to_numpy(made(x, **encoder_of(kind)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-11))


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


def test_misfits_are_refused():
    with pytest.raises(ValueError, match="`intermediate_dim` must be a positive integer"):
        EncoderBlock(PlainSelfAttention(2, 5), 0)
    with pytest.raises(ValueError, match="hand it `encoder_states`.*Received: encoder_states=None"):
        block(DecoderBlock)(states(7))
    with pytest.raises(ValueError, match=r"encoder_states=\(3, 5, 11\) for EncoderBlock"):
        block(EncoderBlock)(states(7), encoder_states=states(5))
