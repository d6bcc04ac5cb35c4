"""Makes a model of the weights of TUPE's released code."""

import re

import numpy as np

from keras_tupe.convert._weights import Report, assign
from keras_tupe.convert.tupe.pooler import pooler_values
from keras_tupe.convert.tupe.weights import (
    BUCKET_TABLE,
    ENCODER,
    TIED_DECODER,
    released_buckets,
    released_shapes,
    values_by_path,
)
from keras_tupe.models import TupeBackbone, TupeMaskedLM

EMBEDDING = f"{ENCODER}embed_tokens.weight"
_FUSED = f"{ENCODER}pos_proj."  # one layer for query and key in later released code
_LAYER = re.compile(re.escape(ENCODER) + r"layers\.([0-9]{1,6})\.")
_VERSIONS = ("decoder.version", f"{ENCODER}version")
CLS_ROW = "row 0 of the position table, [CLS], is used by nothing; the released one has no such row"


def model_of_released_weights(settings, weights, source, dtype=None):
    """Returns a `TupeMaskedLM` and a `Report`, see `from_tupe_checkpoint`.

    Args:
        settings: `TupeSettings`.
        weights: dictionary: released name -> array; float64 stays so in a float64 model.
        source: how messages name the checkpoint.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Raises:
        ValueError: listing the weights that are missing, left over, not real numbers or of another
            shape; or if a copy of the token embedding or of the buckets is not one.
    """
    weights = _separate_query_and_key(settings, weights)
    pooler, pooler_names, dropped, new = pooler_values(settings, weights)
    dropped |= _unused(settings, weights, source)
    vocabulary_size = _check(settings, weights, {*pooler_names, *dropped}, source)
    backbone = TupeBackbone(
        vocabulary_size,
        settings.num_layers,
        settings.num_heads,
        settings.hidden_dim,
        settings.intermediate_dim,
        position=settings.position,
        position_options={"variant": "released"},
        dropout=settings.dropout,
        max_sequence_length=settings.max_sequence_length,
        zero_padded_embeddings=True,
        dtype=dtype,
    )
    model = TupeMaskedLM(backbone)
    values = {**values_by_path(settings, weights), **pooler}
    assign(model, values, new)
    return model, Report(tuple(values), dropped, new, (CLS_ROW,))


def _separate_query_and_key(settings, weights):
    weights = dict(weights)
    for part in ("weight", "bias"):
        names = [f"{ENCODER}pos_{side}_linear.{part}" for side in "qk"]
        fused = weights.get(_FUSED + part)
        fits = fused is not None and fused.ndim and len(fused) == 2 * settings.hidden_dim
        if fits and not set(names) & set(weights):
            del weights[_FUSED + part]
            weights |= zip(names, np.split(fused, 2), strict=True)
    return weights


def _unused(settings, weights, source):
    unused = {name: "a version number" for name in _VERSIONS if name in weights}
    tied, buckets = weights.get(TIED_DECODER), weights.get(BUCKET_TABLE)
    if tied is not None and EMBEDDING in weights:
        if not np.array_equal(tied, weights[EMBEDDING], equal_nan=True):
            raise ValueError(
                "The output matrix of the masked-LM head must be the token embedding itself, as "
                "in TUPE's released code; an untied one has no place here. "
                f"Received: {TIED_DECODER!r}, which differs from {EMBEDDING!r}; {source}"
            )
        unused[TIED_DECODER] = "the token embedding once more, to which ours is tied"
    if buckets is not None and settings.has_relative_bias:
        length = settings.max_sequence_length
        if buckets.shape != (length, length) or (buckets != released_buckets(length)).any():
            raise ValueError(
                "The table of distance buckets must be the one of TUPE's released code (32 "
                "buckets, up to 128 tokens, two for [CLS]). "
                f"Received: another {BUCKET_TABLE!r} of shape {buckets.shape}; {source}"
            )
        unused[BUCKET_TABLE] = "a constant, not a weight"
    return unused


def _check(settings, weights, known, source):
    """Returns the size of the vocabulary, if all weights are there and fit."""
    layers = {int(found[1]) for found in map(_LAYER.match, weights) if found}
    if layers != set(range(min(settings.num_layers, len(weights)))):
        raise ValueError(
            f"The settings of the checkpoint say encoder_layers={settings.num_layers}, which must "
            f"be the number of layers in it. Received: layers {sorted(layers)}; {source}"
        )
    has_table = f"{ENCODER}relative_attention_bias.weight" in weights
    if settings.has_relative_bias != has_table:
        raise ValueError(
            "The checkpoint must have a bias for relative positions if its settings say rel_pos "
            f"(TUPE-R), and none if not (TUPE-A). Received: rel_pos={settings.has_relative_bias}, "
            f"{'a' if has_table else 'no'} relative_attention_bias; {source}"
        )
    embedding = weights.get(EMBEDDING)
    vocabulary_size = len(embedding) if embedding is not None and embedding.ndim else 1
    shapes = released_shapes(settings, max(1, vocabulary_size))
    problems = [f"{name}: missing" for name in shapes if name not in weights]
    problems += [
        f"{name}: left over" for name in weights if name not in shapes and name not in known
    ]
    for name in (name for name in shapes if name in weights):
        array = weights[name]
        if array.shape != shapes[name]:
            problems.append(f"{name}: shape {array.shape}, expected {shapes[name]}")
        elif array.dtype.kind != "f":
            problems.append(f"{name}: {array.dtype} instead of real numbers")
    if problems:
        raise ValueError(
            "The weights must be those of TUPE's released model, in the sizes of the checkpoint's "
            f"settings. Received: {'; '.join(problems)}; {source}"
        )
    return vocabulary_size
