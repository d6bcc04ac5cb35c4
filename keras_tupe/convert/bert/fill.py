"""Fills a model with the weights of another library."""

import numpy as np

from keras_tupe.convert._assign import assign, weights_by_path
from keras_tupe.convert.report import Report

# What a source may lack as a whole; ours then keeps its initial values.
_OPTIONAL = {"mlm_head": "masked-LM head", "pooled_dense": "pooler"}


def fill(model, found, layout, names, dropped, notes=(), absent=None):
    """Sets the weights of a language model from what a checkpoint holds.

    A masked-LM head or a pooler that is missing as a whole is left as it was initialized.

    Args:
        model: a new `TupeMaskedLM` or `TupeCausalLM`.
        found: dictionary: name in the checkpoint -> array.
        layout: dictionary: path of our weight -> `Place`, whose name is one of `found`.
        names: dictionary: name in `found` -> how the checkpoint spells it.
        dropped: dictionary: name in `found` -> why it is left out.
        notes: sentences for the report.
        absent: dictionary: path of a weight that such a checkpoint never has, and that keeps its
            initial value -> why.

    Returns:
        A `Report`.

    Raises:
        ValueError: listing all weights that are missing, left over or of another shape; the model
            is then as it was.
    """
    heads = model.backbone.num_heads
    weights = weights_by_path(model)
    new = {**_missing_parts(weights, found, layout), **(absent or {})}
    values, problems = {}, []
    for path, weight in weights.items():
        if path in new:
            continue
        place = layout[path]
        if place.name not in found:
            problems.append(f"{place.name}: missing")
            continue
        array = found[place.name]
        expected = _shape_there(place, weight.shape, heads)
        if array.shape != expected:
            problems.append(f"{names[place.name]}: shape {array.shape}, expected {expected}")
            continue
        if array.dtype.kind in "biuc":
            problems.append(f"{names[place.name]}: {array.dtype} instead of real numbers")
            continue
        values[path] = place.form.ours(array, heads)
    used = {layout[path].name for path in weights if path not in new}
    problems += [f"{names[name]}: left over" for name in found if name not in used | set(dropped)]
    if problems:
        raise ValueError(
            "The weights must be those of the model that the configuration describes. "
            f"Received: {'; '.join(problems)}"
        )
    assign(model, values, new)
    dropped = {names[name]: reason for name, reason in dropped.items()}
    return Report(tuple(values), dropped, new, tuple(notes))


def _missing_parts(weights, found, layout):
    """Returns the weights of optional parts of which the source has nothing, with the reason."""
    new = {}
    for part, what in _OPTIONAL.items():
        paths = [path for path in weights if path.split("/")[0] == part]
        if not any(path in layout and layout[path].name in found for path in paths):
            new |= dict.fromkeys(paths, f"the source has no {what}; initialized")
    return new


def _shape_there(place, shape, heads):
    """Returns which shape a weight of ours has in the other library, without copying a weight."""
    return place.form.theirs(np.broadcast_to(np.zeros((), np.bool_), shape), heads).shape
