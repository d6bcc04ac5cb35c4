"""Weights of models by path: set all or none, flags copied, and the report of a conversion."""

import dataclasses

import keras
import numpy as np

from keras_tupe._finite import check_finite
from keras_tupe._keras_private.layers import all_layers
from keras_tupe.models import TupeSeq2SeqBackbone


def weights_by_path(model):
    """Returns the weights of a model by path, without the names of the models around them.

    Args:
        model: a `TupeBackbone` or a `TupeSeq2SeqBackbone`, or a task with one.

    Returns:
        Dictionary from paths such as `"block_0/attention/query/kernel"` to variables, in the
        order of `model.weights`; of an encoder and a decoder with the side in front, such as
        `"decoder/block_0/attention/query/kernel"`, but for the token embedding, which they share.
        States of random generators are not weights.
    """
    backbone = getattr(model, "backbone", model)
    if isinstance(backbone, TupeSeq2SeqBackbone):
        return _of_both_sides(backbone)
    return {inner_path(model, weight.path): weight for weight in model.weights}


def _of_both_sides(backbone):
    shared = {weight.path: weight for weight in backbone.token_embedding.weights}
    sides = {
        f"{side}/{weight.path}": weight
        for side in ("encoder", "decoder")
        for weight in getattr(backbone, side).weights
        if weight.path not in shared
    }
    return {**shared, **sides}


def inner_path(model, path):
    """Returns the path of a weight or layer of a model without the names of the models around it.

    Args:
        model: a `TupeBackbone`, or a task with one.
        path: string, such as `"tupe_masked_lm/block_0/attention"`.
    """
    models = (getattr(model, "backbone", model), model)
    tops = {
        layer.name for each in models for layer in each.layers if not isinstance(layer, keras.Model)
    }
    parts = path.split("/")
    start = next((place for place, part in enumerate(parts) if part in tops), 0)
    return "/".join(parts[start:])


def assign(model, values, new=None):
    """Sets every weight of a model, or nothing if something does not fit.

    Args:
        model: a `TupeBackbone`, or a task with one.
        values: dictionary from paths, see `weights_by_path`, to arrays of the weights' shapes. They
            are rounded to the weights' type, so float64 stays as it is in a float64 model.
        new: paths of the weights that keep their initial values.

    Raises:
        ValueError: if a weight has no value, a value no weight or another shape, with a list of
            all of them; and for values that are not numbers.

    Example:
        >>> from keras_tupe.convert._weights import assign, weights_by_path
        >>> model = keras_tupe.TupeBackbone(100, 1, 2, 16, 32)
        >>> assign(model, {path: np.ones(w.shape) for path, w in weights_by_path(model).items()})
        >>> float(model.weights[0][0, 0])
        1.0
    """
    weights, new = weights_by_path(model), set(new or ())
    problems = [
        f"{path}: there is no value for it" for path in weights if path not in {*values, *new}
    ]
    problems += [
        f"{path}: the model has no such weight"
        for path in {**values, **dict.fromkeys(sorted(new))}
        if path not in weights
    ]
    for path, value in values.items():
        if path in new:
            problems.append(f"{path}: it has a value and must not be called new")
        elif path in weights and tuple(value.shape) != tuple(weights[path].shape):
            shape = tuple(map(int, weights[path].shape))
            problems.append(f"{path}: the model has the shape {shape}, the value {value.shape}")
    if problems:
        raise ValueError(
            "Weights and values must fit each other, one to one. These do not: "
            + "; ".join(problems)
            + f". Received: {len(values)} values for {len(weights)} weights"
        )
    for path, value in values.items():
        check_finite(path, np.asarray(value))
    for path, value in values.items():
        weights[path].assign(value)


_OF_WEIGHTS = ("trainable", "regularizer", "constraint")


def copy_flags(old, new, kept):
    """Makes the parts that two models share trainable or frozen in the new one as in the old one.

    Weights take over their regularizers and constraints too. Layers that the new model alone has
    follow what they are part of.

    Args:
        old: a `TupeBackbone`, or a task with one.
        new: a model of the same class, which is changed.
        kept: paths of the weights that both models have.
    """
    shared = {
        path.rsplit("/", count)[0] for path in kept for count in range(1, path.count("/") + 1)
    }
    found = _layers_by_path(old)
    new.trainable = old.trainable
    if old is not getattr(old, "backbone", old):
        new.backbone.trainable = old.backbone.trainable
    # from the outside in, because a layer's flag goes down to all that is in it
    for path, layer in _layers_by_path(new).items():
        if path in shared and path in found:
            layer.trainable = found[path].trainable
    before, after = weights_by_path(old), weights_by_path(new)
    for path in kept:
        for name in _OF_WEIGHTS:
            setattr(after[path], name, getattr(before[path], name))


def _layers_by_path(model):
    """Returns the layers that are built, outer ones before those in them."""
    layers = all_layers(model, include_self=False)
    found = {inner_path(model, layer.path): layer for layer in layers if layer.path}
    return dict(sorted(found.items(), key=lambda item: item[0].count("/")))


@dataclasses.dataclass(frozen=True)
class Report:
    """Report of a conversion: the weights that it kept, dropped and made new.

    `print(report)` shows it as a table, with weights that share a reason in one line.

    Attributes:
        kept: paths of our weights that hold what the source held.
        dropped: name of a weight of the source -> why nothing here holds it.
        new: path of a weight of ours that the source has not -> why, and what it holds.
        notes: sentences about all that is not a weight.

    Example:
        >>> print(Report(("token_embedding/embeddings",), {"position_ids": "a constant"}))
        kept     1 weight
        dropped  1 weight: a constant
                   position_ids
        new      0 weights
    """

    kept: tuple[str, ...] = ()
    dropped: dict[str, str] = dataclasses.field(default_factory=dict)
    new: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __str__(self):
        lines = [f"kept     {_count(self.kept)}"]
        lines += _section("dropped", self.dropped) + _section("new", self.new)
        return "\n".join(lines + [f"note     {note}" for note in self.notes])


def _section(title, reasons):
    lines = [] if reasons else [f"{title:<8} {_count(reasons)}"]
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, given in reasons.items() if given == reason]
        lines.append(f"{title:<8} {_count(names)}: {reason}")
        lines += [f"           {name}" for name in names]
    return lines


def _count(names):
    return f"{len(names):,} weight" + ("" if len(names) == 1 else "s")
