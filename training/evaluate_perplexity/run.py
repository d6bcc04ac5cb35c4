"""Losses of the tokens of rows by a causal preset, summed up by position."""

import math
import time

import keras
import numpy as np

from keras_tupe import TupeCausalLM, positions, with_memory_length
from keras_tupe.data import NextTokens, PreparedRows
from keras_tupe.objectives import get
from training.finetune.forward import Forward
from training.presets.load import load_preset
from training.presets.token_losses import TokenLosses
from training.presets.vocabulary import check_same_vocabulary


def evaluate(settings):
    """Measures the losses of all tokens.

    Args:
        settings: a `Settings` without problems.

    Returns:
        Dictionary, the part of `results.json` that comes out of the rows.

    Raises:
        ValueError: if preset and rows cannot be used.
    """
    if settings.position_file is not None:
        positions.load_file(settings.position_file)
    model, text = load_preset(settings.preset)
    if not isinstance(model, TupeCausalLM):
        raise ValueError(
            "PRESET must be a causal language model, which predicts each token from those before "
            "it, as `training.pretrain --objective causal_lm` makes one. "
            f"Received: {settings.preset!r}, a {type(model).__name__}"
        )
    model = _with_memory(model, settings)
    rows = PreparedRows(settings.data, settings.split)
    check_same_vocabulary(settings.preset, model.backbone.vocabulary_size, rows.vocabulary)
    length, backbone = rows.length - 1, model.backbone
    if backbone.has_length_limit:
        length = min(length, backbone.max_sequence_length)
    start = time.monotonic()
    sums = _sums(model, rows, length, settings)
    trained = getattr(text, "sequence_length", None)
    return {
        "preset": settings.preset,
        "position": backbone.position,
        "attention_pattern": backbone.attention_pattern,
        "memory_length": backbone.memory_length,
        "segment_length": backbone.segment_length,
        "trained_length": trained,
        "row_tokens": rows.length,
        "positions": length,
        "seconds": time.monotonic() - start,
        **summary(*sums, settings.bins),
    }


def _with_memory(model, settings):
    """Returns the model with the memory that is asked for."""
    lengths = settings.memory_length, settings.segment_length
    if lengths == (None, None):
        return model
    memory = lengths[0] if lengths[0] is not None else model.backbone.memory_length
    try:
        return with_memory_length(model, memory, lengths[1])
    except ValueError as error:
        raise ValueError(f"--memory-length, --segment-length: {error}") from None


def _sums(model, rows, length, settings):
    """Returns the sums over all rows by position, `(length,)`: losses, tokens, characters."""
    vocabulary = rows.vocabulary
    rule = NextTokens(vocabulary.size, vocabulary.pad_id, vocabulary.end_id)
    forward = Forward(TokenLosses(model))
    size = max(settings.batch_tokens // length, 1)
    count = min(settings.rows or len(rows), len(rows))
    fills = keras.backend.backend() == "jax"  # which compiles for every shape
    sums = np.zeros((3, length))
    for first in range(0, count, size):
        numbers = np.arange(first, first + size if fills else min(first + size, count))
        token_ids = rows[np.minimum(numbers, count - 1)]
        inputs, labels, weights = rule.examples(token_ids, numbers, 0)
        weights = weights * (numbers < count)[:, np.newaxis]
        inputs, labels, weights = (
            {name: ids[:, :length] for name, ids in inputs.items()},
            labels[:, :length],
            weights[:, :length].astype("float64"),
        )
        losses = forward({**inputs, "labels": labels}).astype("float64")
        losses = np.where(weights > 0, losses, 0)
        sums += [
            (losses * weights).sum(axis=0),
            weights.sum(axis=0),
            (vocabulary.characters[labels] * weights).sum(axis=0),
        ]
    if not np.isfinite(sums).all():
        raise ValueError(
            "The losses of a model must be finite numbers; its weights are damaged, or its "
            "training diverged. Received: losses that are infinite or undefined"
        )
    return sums


def summary(losses, tokens, characters, bins):
    """Returns what results tell of sums by position: means of all, and of bins of positions.

    Args:
        losses, tokens, characters: sums `(length,)`.
        bins: how many bins at most, of about equal width.

    Returns:
        Dictionary of `tokens`, `characters`, `loss` in nats, `numbers` (perplexities), and `bins`:
        a list of dictionaries with `first` and `last`, the numbers of tokens that a prediction is
        made from, and `tokens` and `loss` (`None` without tokens).
    """
    total = losses.sum() / max(tokens.sum(), 1)
    edges = np.unique(np.linspace(0, len(losses), bins + 1).round().astype(int))
    found = []
    for first, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        count = tokens[first:end].sum()
        loss = float(losses[first:end].sum() / count) if count else None
        found.append({"first": first + 1, "last": end, "tokens": int(count), "loss": loss})
    of_token = characters.sum() / max(tokens.sum(), 1)
    return {
        "tokens": int(tokens.sum()),
        "characters": int(characters.sum()),
        "loss": float(total),
        "numbers": get("causal_lm").numbers(float(total), of_token or math.inf),
        "bins": found,
    }
