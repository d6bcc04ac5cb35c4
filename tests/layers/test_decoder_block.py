import math

import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from position_cases import scramble
from tolerances import in_float64

from keras_tupe.layers import CrossAttention, DecoderBlock, PlainSelfAttention

MASK = np.array([[1] * 5, [1] * 3 + [0] * 2, [0, 1, 0, 1, 0]], "int32")
DROPOUTS = ("attention_dropout", "cross_attention_dropout", "feedforward_dropout")


def states(length, seed=0):
    return np.random.default_rng(seed).normal(size=(3, length, 11))


def attentions(dtype="float32", **kwargs):
    return {
        "attention": PlainSelfAttention(
            2, 5, attention_pattern="causal", dtype=dtype, name="attention", **kwargs
        ),
        "cross_attention": CrossAttention(2, 3, dtype=dtype, name="cross_attention", **kwargs),
    }


def test_layer_contract(tmp_path):
    run_layer_contract(
        DecoderBlock,
        lambda dtype: {
            **attentions(dtype),
            "intermediate_dim": 13,
            "normalize_first": True,
            "layer_norm_epsilon": 1e-3,
            "kernel_initializer": "random_normal",
            "activation": "gelu_approximate",
        },
        {
            "hidden_states": states(7).astype("float32"),
            "position_bias": np.random.normal(size=(1, 2, 7, 7)).astype("float32"),
            "padding_mask": np.tile(np.arange(7) < 6, (3, 1)).astype("int32"),
            "encoder_states": states(5, seed=1).astype("float32"),
            "encoder_padding_mask": MASK,
        },
        output_shape=(3, 7, 11),
        num_weights=26,
        folder=tmp_path,
        dead_weights=["attention/key/bias"],
    )


@pytest.mark.slow
def test_layer_contract_with_dropout(tmp_path):
    run_layer_contract(
        DecoderBlock,
        lambda dtype: {**attentions(dtype, dropout=0.1), "intermediate_dim": 13, "dropout": 0.1},
        {
            "hidden_states": states(7).astype("float32"),
            "encoder_states": states(5, seed=1).astype("float32"),
        },
        output_shape=(3, 7, 11),
        num_weights=26,
        num_states=5,
        folder=tmp_path,
        dead_weights=["attention/key/bias"],
    )


def block(**kwargs):
    made = DecoderBlock(
        **attentions("float64"), intermediate_dim=13, dtype="float64", name="b", **kwargs
    )
    made.build((3, 7, 11))
    scramble(made.weights)
    return made


def layer_norm(x, gamma, beta, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    return gamma * centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) + beta


@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize(("epsilon", "activation"), [(1e-5, "gelu"), (0.3, "gelu_approximate")])
def test_the_block_equals_its_equation(normalize_first, epsilon, activation):
    made = block(normalize_first=normalize_first, layer_norm_epsilon=epsilon, activation=activation)
    x, m = states(7), states(5, seed=1)
    w = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in made.weights}

    def norm(name, values):
        return layer_norm(values, w[f"{name}/gamma"], w[f"{name}/beta"], epsilon)

    def heads(name, values):
        kernel, bias = w[f"{name}/kernel"], w[f"{name}/bias"]
        return np.einsum("btm,mhd->bhtd", values, kernel) + bias[None, :, None]

    def attend(name, values, others, mask):
        query, key = heads(f"{name}/query", values), heads(f"{name}/key", others)
        logits = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
        scores = np.exp(logits) * mask
        context = scores / scores.sum(-1, keepdims=True) @ heads(f"{name}/value", others)
        out = np.einsum("bhtd,hdm->btm", context, w[f"{name}/output/kernel"])
        return out + w[f"{name}/output/bias"]

    def before(values):
        return attend("attention", values, values, np.tril(np.ones((7, 7))))

    def across(values):
        return attend("cross_attention", values, m, MASK[:, None, None])

    def feed_forward(values):
        inner = values @ w["feedforward_intermediate/kernel"] + w["feedforward_intermediate/bias"]
        if activation == "gelu":
            inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        else:
            tanh = np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3))
            inner = inner * (1 + tanh) / 2
        return inner @ w["feedforward_output/kernel"] + w["feedforward_output/bias"]

    wanted = x
    for name, sublayer in (
        ("attention", before),
        ("cross_attention", across),
        ("feedforward", feed_forward),
    ):
        if normalize_first:
            wanted = wanted + sublayer(norm(f"{name}_layer_norm", wanted))
        else:
            wanted = norm(f"{name}_layer_norm", wanted + sublayer(wanted))
    got = made(x, encoder_states=m, encoder_padding_mask=MASK)
    np.testing.assert_allclose(ops.convert_to_numpy(got), wanted, rtol=0, atol=in_float64(1e-12))


def test_some_positions_are_those_of_all():
    made, where = block(), np.array([[0, 3], [6, 2], [1, 1]])
    given = {"encoder_states": states(5, seed=1), "encoder_padding_mask": MASK}
    whole = ops.convert_to_numpy(made(states(7), **given))
    some = ops.convert_to_numpy(made(states(7), output_positions=where, **given))
    wanted = np.take_along_axis(whole, where[..., None], axis=1)
    np.testing.assert_allclose(some, wanted, rtol=0, atol=in_float64(1e-12))


@pytest.mark.parametrize("where", DROPOUTS)
def test_each_sublayer_has_its_dropout(where):
    made = DecoderBlock(**attentions(), intermediate_dim=13, dropout=0.5)
    for name in DROPOUTS:
        getattr(made, name).rate = 0.5 if name == where else 0
    x, m = states(7).astype("float32"), states(5, seed=1).astype("float32")
    still = ops.convert_to_numpy(made(x, encoder_states=m, training=False))
    moved = ops.convert_to_numpy(made(x, encoder_states=m, training=True))
    assert np.abs(moved - still).max() > 1e-3


def test_a_block_without_an_encoder_is_refused():
    with pytest.raises(ValueError, match="hand it `encoder_states`.*Received: encoder_states=None"):
        block()(states(7))
