"""Checks of what can be exported, before anything is written."""

import keras

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models import (
    TupeBackbone,
    TupeCausalLM,
    TupeMaskedLM,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeTextClassifier,
    TupeTextEmbedder,
)

_TASKS = (TupeMaskedLM, TupeCausalLM, TupeTextClassifier, TupeTextEmbedder)


def check_model(model):
    """Returns the `TupeBackbone` of a model that can be exported.

    Raises:
        TypeError: if `model` is no `TupeBackbone`, nor a task with one.
        ValueError: as `check_weights`, and if the model cuts rows into segments.
    """
    refuse_pairs(model)
    if not isinstance(model, (TupeBackbone, *_TASKS)):
        first = ", ".join(f"`{kind.__name__}`" for kind in _TASKS[:-1])
        raise TypeError(
            f"`model` must be a `TupeBackbone`, or a {first} or `{_TASKS[-1].__name__}` with one. "
            f"Received: model={model!r:.200}"
        )
    check_weights(model)
    backbone = getattr(model, "backbone", model)
    if backbone.segment_length:
        raise ValueError(
            "A model whose rows are cut into segments, with a memory or without, has no exported "
            "form yet: write a preset with `save_to_preset`. Received: memory_length="
            f"{backbone.memory_length}, segment_length={backbone.segment_length}"
        )
    return backbone


def refuse_pairs(model):
    """Raises `TypeError` for a model of pairs of texts, which has an export of its own."""
    if isinstance(model, (TupeSeq2SeqBackbone, TupeSeq2SeqLM)):
        raise TypeError(
            "A model of pairs of texts is exported by `export_seq2seq`, as a SavedModel that takes "
            f"strings; there is no other form of it. Received: a `{type(model).__name__}`"
        )


def check_weights(model):
    """Refuses a model that TensorFlow cannot save.

    Raises:
        ValueError: if Keras runs on another backend than TensorFlow, or a layer has no weights
            yet.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "A SavedModel is made of TensorFlow functions. Write a preset with `save_to_preset`, "
            "and export that with KERAS_BACKEND=tensorflow. Received: Keras on "
            f"{keras.backend.backend()!r}"
        )
    unbuilt = [layer.name for layer in model.layers if not layer.built]
    if unbuilt:
        raise ValueError(
            "The model has no weights to export yet. Call it on data first. Received: a model "
            f"whose layers {unbuilt} are not built"
        )


def check_length(backbone, length):
    """Returns the length of the signatures, in tokens.

    Raises:
        ValueError: if it is not a positive integer, or above the end of a position table.
    """
    length = backbone.max_sequence_length if length is None else length
    check_positive_integers(length=length)
    if backbone.has_length_limit and length > backbone.max_sequence_length:
        raise ValueError(
            "`length` must not exceed the model's max_sequence_length="
            f"{backbone.max_sequence_length}. Received: length={length}"
        )
    return int(length)


def check_tokenizer(packing, backbone):
    """Raises `ValueError` if a packing's vocabulary has another size than a model's."""
    found = packing.tokenizer.vocabulary_size
    if found != backbone.vocabulary_size:
        raise ValueError(
            "The tokenizer must be the one that the model was trained with. Received: a vocabulary "
            f"of {found} pieces for a model of {backbone.vocabulary_size}"
        )
