"""Contracts of blocks, heads, embeddings and dropout, by one table."""

import numpy as np
import pytest
from layer_contract import run_layer_contract

from keras_tupe.layers import (
    CrossAttention,
    DecoderBlock,
    DiscriminatorHead,
    DisentangledEmbedding,
    Dropout,
    EncoderBlock,
    MaskedLMHead,
    PlainSelfAttention,
    TokenEmbedding,
    UntiedPositionalAttention,
)


def floats(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


IDS = np.array([[1, 12, 0], [3, 3, 7]], "int32")
STATES, SOURCE = {"hidden_states": floats(3, 7, 11)}, {"encoder_states": floats(3, 5, 11)}
BIASED = {
    **STATES,
    "position_bias": floats(1, 2, 7, 7),
    "padding_mask": np.tile(np.arange(7) < 5, (3, 1)).astype("int32"),
}
MASK = np.array([[1] * 5, [1] * 3 + [0] * 2, [0, 1, 0, 1, 0]], "int32")
OPTIONS = {
    "intermediate_dim": 13,
    "normalize_first": True,
    "layer_norm_epsilon": 1e-3,
    "kernel_initializer": "random_normal",
    "activation": "gelu_approximate",
}


def plain(dtype, **kwargs):
    return {"attention": PlainSelfAttention(2, 5, dtype=dtype, name="attention", **kwargs)}


def both(dtype, **kwargs):
    across = CrossAttention(2, 3, dtype=dtype, name="cross_attention", **kwargs)
    return {**plain(dtype, attention_pattern="causal", **kwargs), "cross_attention": across}


def Contract(layer, arguments, inputs, shape, weights, id=None, marks=(), **kwargs):  # noqa: N802
    kwargs |= {"output_shape": shape, "num_weights": weights}
    marks = pytest.mark.filterwarnings(*marks) if marks else ()
    return pytest.param(layer, arguments, inputs, kwargs, id=id or layer.__name__, marks=marks)


BLOCK = {"shape": (3, 7, 11), "dead_weights": ["attention/key/bias"]}
CASES = [
    Contract(Dropout, lambda d: {"rate": 0.3, "seed": 5}, STATES, (3, 7, 11), 0, num_states=1),
    Contract(
        TokenEmbedding,
        lambda d: {"vocabulary_size": 13, "hidden_dim": 5, "initializer": "random_normal"},
        {"inputs": IDS},
        (2, 3, 5),
        1,
    ),
    Contract(
        DisentangledEmbedding,
        lambda d: {"base": TokenEmbedding(13, 5, dtype=d)},
        {"inputs": IDS},
        (2, 3, 5),
        2,
        dead_weights=("embeddings",),  # of the base: no gradient passes to it
        marks=["ignore:Gradients do not exist for variables .'layer/token_embedding"],
    ),
    Contract(
        MaskedLMHead,
        lambda d: {
            "token_embedding": TokenEmbedding(13, 11, dtype=d, name="token_embedding"),
            "layer_norm_epsilon": 1e-3,
            "kernel_initializer": "random_normal",
        },
        {**STATES, "mask_positions": np.array([[1, 2], [0, 6], [5, 5]], "int32")},
        (3, 2, 13),
        6,
        at_least_float32=True,
    ),
    Contract(
        DiscriminatorHead,
        lambda d: {"hidden_dim": 11, "kernel_initializer": "random_normal"},
        STATES,
        (3, 7),
        4,
        at_least_float32=True,
    ),
    Contract(
        EncoderBlock,
        lambda d: (
            {"attention": UntiedPositionalAttention(2, 5, dtype=d, name="attention")} | OPTIONS
        ),
        BIASED,
        weights=16,
        **BLOCK,
    ),
    Contract(
        EncoderBlock,
        lambda d: {**plain(d, dropout=0.1), "intermediate_dim": 13, "dropout": 0.1},
        STATES,
        weights=16,
        num_states=3,
        id="EncoderBlock with dropout",
        **BLOCK,
    ),
    Contract(
        DecoderBlock,
        lambda d: both(d) | OPTIONS,
        {**BIASED, **SOURCE, "encoder_padding_mask": MASK},
        weights=26,
        **BLOCK,
    ),
]


@pytest.mark.parametrize(("layer", "arguments", "inputs", "kwargs"), CASES)
def test_layer_contract(layer, arguments, inputs, kwargs, tmp_path):
    run_layer_contract(layer, arguments, inputs, folder=tmp_path, **kwargs)
