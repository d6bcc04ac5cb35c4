"""The exported encoders that are compared."""

import dataclasses
import pathlib

import keras_hub
import numpy as np
import tensorflow as tf

from keras_tupe import SIZES, TupeBackbone
from keras_tupe.export import export_encoder

BASELINE = "absolute"
PEER = "KerasHub's BERT"
VOCABULARY_SIZE = 8000
NUM_SEGMENTS = 2


def cases(folder, methods, size, length):
    """Exports and loads the encoders; returns a function per label: inputs -> outputs.

    Args:
        folder: where to write.
        methods: names of position methods beside `absolute`.
        size: name in `keras_tupe.SIZES`.
        length: tokens per row.
    """
    found = {}
    for name in dict.fromkeys([BASELINE, *methods]):
        path = pathlib.Path(folder, name)
        backbone = TupeBackbone(
            VOCABULARY_SIZE,
            **dataclasses.asdict(SIZES[size]),
            position=name,
            num_segments=NUM_SEGMENTS,
            max_sequence_length=length,
        )
        export_encoder(backbone, path)
        found[name] = _Served(path, ("input_word_ids", "input_mask", "input_type_ids"))
    sizes = SIZES[size]
    peer = keras_hub.models.BertBackbone(
        VOCABULARY_SIZE,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        hidden_dim=sizes.hidden_dim,
        intermediate_dim=sizes.intermediate_dim,
        max_sequence_length=length,
        num_segments=NUM_SEGMENTS,
    )
    path = pathlib.Path(folder, "peer")
    peer.export(str(path), verbose=False)
    found[PEER] = _Served(path, ("token_ids", "padding_mask", "segment_ids"))
    return found


def inputs(length, batch):
    """Returns ids, mask and segments, int32 `(batch, length)`; a tenth of each row is padded."""
    generator = np.random.default_rng(0)
    mask = np.broadcast_to(np.arange(length) < length - length // 10, (batch, length))
    ids = generator.integers(5, VOCABULARY_SIZE, (batch, length)) * mask
    return [tf.constant(value, tf.int32) for value in (ids, mask, np.zeros_like(ids))]


class _Served:
    """`serving_default` of a SavedModel, called with three tensors."""

    def __init__(self, path, names):
        self._loaded = tf.saved_model.load(str(path))  # kept: its functions die with it
        self._function = self._loaded.signatures["serving_default"]
        self._names = names

    def __call__(self, values):
        outputs = self._function(**dict(zip(self._names, values, strict=True)))
        return {name: value.numpy() for name, value in outputs.items()}
