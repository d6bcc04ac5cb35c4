"""The table of an ablation's losses by position."""

import math

import numpy as np

from keras_tupe.metrics import mean_interval
from training.command.report import table

_COLUMNS = 8


def by_position(ablation):
    """Returns a heading, a table of perplexities by position and a note; nothing without them.

    Args:
        ablation: an `Ablation`.
    """
    found = ablation.by_position
    if not found:
        return []
    longest = max((results[0] for results in found.values()), key=lambda one: one["positions"])
    columns = _groups(longest["bins"])
    header = ["method", "seeds", *(f"{first:,} to {last:,}" for first, last in columns)]
    rows = []
    for name, results in found.items():
        numbers = ([_perplexity(one["bins"], *column) for one in results] for column in columns)
        rows.append([name, str(len(results)), *map(_cell, numbers)])
    note = (
        "Perplexity per token of held-out text, by how many tokens a prediction is made from, the "
        "start token included; `-` where a method has no positions. +- is half of the 95 % "
        "interval of the mean over seeds. The rows of training had "
        f"{longest['trained_length'] or '?'} tokens. Picture: `positions.png`."
    )
    return ["## Perplexity by position", table(header, rows), note]


def _groups(bins):
    """Returns the first and last position of up to eight groups of bins."""
    parts = np.array_split(np.arange(len(bins)), min(_COLUMNS, len(bins)))
    return [(bins[part[0]]["first"], bins[part[-1]]["last"]) for part in parts]


def _perplexity(bins, first, last):
    """Returns the perplexity of the bins whose middle is in a range; `None` without tokens."""
    inside = [one for one in bins if first <= (one["first"] + one["last"]) / 2 <= last]
    inside = [one for one in inside if one["loss"] is not None]
    tokens = sum(one["tokens"] for one in inside)
    if not tokens:
        return None
    loss = sum(one["loss"] * one["tokens"] for one in inside) / tokens
    return math.exp(min(loss, 700.0))


def _cell(values):
    if None in values:
        return "-"
    mean, low, high = mean_interval(values)
    return f"{mean:.4g}" if math.isnan(low) else f"{mean:.4g} +- {high - mean:.2g}"
