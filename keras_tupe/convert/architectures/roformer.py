"""RoFormer: here `"rope"` (Su et al. 2021).

It rotates the channels 2t and 2t + 1 of a head as a pair, ours t and t + d / 2: the channels of
queries and keys change places, which changes no number.
"""

import dataclasses

import numpy as np

from keras_tupe.convert.architectures import Entry, Form, Head, bert, built_as
from keras_tupe.convert.architectures.electra import WIDTH
from keras_tupe.convert.tokenizer_files import ROFORMER


def _halves(array):
    return np.concatenate([array[..., ::2], array[..., 1::2]], axis=-1)


def _pairs(array):
    half = array.shape[-1] // 2
    return np.stack([array[..., :half], array[..., half:]], axis=-1).reshape(array.shape)


KERNEL = Form(
    lambda array, shape: _halves(array.T.reshape(shape)),
    lambda array: _pairs(array).reshape(array.shape[0], -1).T,
)
BIAS = Form(
    lambda array, shape: _halves(array.reshape(shape)), lambda array: _pairs(array).reshape(-1)
)


def waves(backbone):
    """Returns the sines, then the cosines of each position, a constant that is kept there."""
    size = backbone.hidden_dim // backbone.num_heads
    places = np.arange(backbone.max_sequence_length)[:, None]
    angles = places / 10000 ** (2 * np.arange(size // 2) / size)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return {"encoder.embed_positions.weight": table.astype(backbone.variable_dtype)}


def read(config):
    """Checks that heads have pairs of channels."""
    if config["hidden_size"] // config["num_attention_heads"] % 2:
        raise ValueError(
            f"hidden_size={config['hidden_size']} must be an even multiple of "
            f"num_attention_heads={config['num_attention_heads']}, for pairs of channels"
        )
    return {}


CONVERTER = bert.relative(
    "RoFormer",
    "RoFormer",
    heads={"TupeMaskedLM": Head("RoFormerForMaskedLM", bert.HEAD, bert.as_blocks)},
    entries=bert.trunk(
        dataclasses.replace(WIDTH, default=None),
        Entry("max_position_embeddings", "max_sequence_length", default=1536),
    ),
    fixed={"is_decoder": (False, "decoders"), "rotary_value": (False, "values that are rotated")},
    ours={"position": "rope"},
    read=read,
    suits=built_as(position="rope"),
    without=("position_embedding", "pooled_dense"),
    names={"embeddings_projection": "embeddings_project"},
    forms={
        f"block_#/attention/{side}/{part}": form
        for side in ("query", "key")
        for part, form in (("kernel", KERNEL), ("bias", BIAS))
    },
    constants=waves,
    frame=ROFORMER,
)
