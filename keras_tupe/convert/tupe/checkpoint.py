"""Checkpoints of TUPE's authors."""

import dataclasses
import os

import numpy as np

from keras_tupe.convert import torch_file
from keras_tupe.convert.tupe.dictionary import read_fairseq_dictionary, special_ids
from keras_tupe.convert.tupe.model import EMBEDDING, model_of_released_weights
from keras_tupe.convert.tupe.settings import tupe_settings

_NOT_WEIGHTS = (
    *("optimizer_history", "last_optimizer_state", "extra_state", "criterion"),
    *("optimizer", "best_loss", "epoch", "batch_offset", "val_loss"),  # of older fairseq
)
_REASON = "the state of a training, which cannot be continued here"


def from_tupe_checkpoint(path, dictionary=None, dtype=None):
    """Returns a masked LM with the weights of a released TUPE checkpoint, and what became of them.

    TUPE-R and TUPE-A are told apart by the settings in the file. The model is that of the released
    code, `position_options={"variant": "released"}`, not that of the paper.

    It takes token ids only, with or without a dictionary: text must be cut by the byte pair
    encoding that the checkpoint was trained with, whose merges are in neither file. `<s>`, id 0,
    comes first and is [CLS]; `<pad>` is 1, so `padding_mask = token_ids != 1`.

    Differences from the source: one dropout rate everywhere, the one of the hidden states.

    Args:
        path: path of the `.pt` file. Nothing in it is run, and torch is not needed.
        dictionary: path of fairseq's `dict.txt`, to check the vocabulary and to know all special
            tokens; or `None`.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Returns:
        `(model, report)`: a `TupeMaskedLM` and a `Report`. The dense layer of a fine-tuned
        classification head, if there is one, becomes the pooler; else the pooler is initialized
        and reported as new.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged or unsafe, settings are not supported, weights are
            missing, left over or of another shape (all are listed), or the dictionary is that of
            another checkpoint.

    References:
        https://github.com/guolinke/TUPE
    """
    source = f"path={os.fspath(path)!r}"
    tokens = None if dictionary is None else read_fairseq_dictionary(dictionary)
    args, weights, others = _parts(torch_file.read(path), source)
    settings = tupe_settings(args, source)
    embedding, ids = weights.get(EMBEDDING), None
    if tokens is not None and embedding is not None and embedding.ndim:
        both = f"dictionary={os.fspath(dictionary)!r}, {source}"
        ids = special_ids(tokens, len(embedding), both)
    model, report = model_of_released_weights(settings, weights, source, dtype)
    notes = (
        *report.notes,
        *_notes_on_text(ids, model.backbone.vocabulary_size),
        *_notes_on_settings(settings, weights, model.backbone),
    )
    dropped = {**report.dropped, **dict.fromkeys(others, _REASON)}
    return model, dataclasses.replace(report, dropped=dropped, notes=notes)


def _parts(checkpoint, source):
    """Returns the settings, the weights, and the names of all else in a checkpoint."""
    if type(checkpoint) is not dict or not {"args", "model"} <= set(checkpoint):
        raise ValueError(
            "A checkpoint of TUPE's released code must be a dictionary with `args`, its settings, "
            f"and `model`, its weights. Received: {_named(checkpoint)}; {source}"
        )
    args, weights = checkpoint["args"], checkpoint["model"]
    if not isinstance(args, torch_file.InertObject) or args.class_name != "argparse.Namespace":
        raise ValueError(
            "The settings in a checkpoint, `args`, must be an argparse.Namespace, as in TUPE's "
            f"released code. Received: args of type {type(args).__name__}; {source}"
        )
    is_plain = type(weights) is dict and all(
        type(name) is str and isinstance(value, np.ndarray) for name, value in weights.items()
    )
    if not is_plain:
        raise ValueError(
            "`model` in a checkpoint must be a dictionary from names of weights to tensors. "
            f"Received: {source}"
        )
    others = [name for name in checkpoint if name not in ("args", "model")]
    unknown = [name for name in others if name not in _NOT_WEIGHTS]
    if unknown:
        raise ValueError(
            "A checkpoint may hold settings, weights and the state of the training. It has "
            f"other entries, which would be lost. Received: {unknown[:20]}; {source}"
        )
    return args.attributes, weights, others


def _named(checkpoint):
    if type(checkpoint) is dict:
        return f"a dictionary with the keys {[str(name)[:50] for name in list(checkpoint)[:10]]}"
    return f"an object of type {type(checkpoint).__name__}"


def _notes_on_text(ids, vocabulary_size):
    if ids is None:
        known = (
            "there was no dict.txt: which token an id stands for is not known, but by fairseq's "
            f"rule <s> = 0, <pad> = 1, </s> = 2, <unk> = 3 and most likely <mask> = "
            f"{vocabulary_size - 1}, the last"
        )
    else:
        known = "dict.txt fits: " + ", ".join(f"{token} = {place}" for token, place in ids.items())
    return (
        known,
        "the model takes token ids only: text must be cut by the byte pair encoding of the "
        "training, whose merges are in neither file",
        "a sequence is <s> A </s>, a pair <s> A </s> </s> B </s>; <s> is [CLS]; "
        "padding_mask = token_ids != 1",
    )


def _notes_on_settings(settings, weights, backbone):
    notes = [
        f"the method is {backbone.position} as in the released code (variant='released'), for at "
        f"most {backbone.max_sequence_length} tokens"
    ]
    others = (settings.attention_dropout, settings.activation_dropout)
    if others != (settings.dropout, 0):
        notes.append(
            f"one dropout rate, {settings.dropout}, for all places; the training was with "
            f"{others[0]} for attention scores and {others[1]} inside the feed-forward networks"
        )
    kinds = {str(value.dtype) for value in weights.values() if value.dtype.kind == "f"}
    ours = backbone.dtype_policy.variable_dtype
    if kinds != {ours}:
        notes.append(f"the weights are {', '.join(sorted(kinds))} in the file and {ours} here")
    return tuple(notes)
