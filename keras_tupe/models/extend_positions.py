"""Longer sequences for a model with position tables."""

import keras
import numpy as np

from keras_tupe import positions
from keras_tupe.layers._checks import is_integer
from keras_tupe.models._changed_copy import backbone_of, copy_with


def extend_positions(model, new_length, how="interpolate"):
    """Returns a copy of a model that takes longer sequences than its position tables allow.

    Rows of the tables are changed so, with p_0, the row of [CLS], staying as it is:

        interpolate    p_1 .. p_{n-1} are stretched linearly over 1 .. N-1: first on first,
                       last on last
        repeat         p_1 .. p_{n-1} start over behind their end
        drop_absolute  all rows, p_0 too, become zero vectors of any length: what is known of
                       absolute positions is dropped, to be learned anew; relative terms stay

    All other weights are copied. Fine-tune afterwards: no way is exact.

    Sources: repeating is how Longformer starts (Beltagy et al. 2020, Sec. 5); Huang et al. (2020,
    Table 5) drop the absolute vectors of BERT before they graft relative ones onto it.

    Args:
        model: a `TupeBackbone`, or a task with one (`TupeMaskedLM`, `TupeTextClassifier`). It
            stays as it is.
        new_length: longest sequence afterwards N, in tokens, more than `max_sequence_length`.
        how: `"interpolate"`, `"repeat"` or `"drop_absolute"`.

    Returns:
        A new model of the same class, not compiled as the old one was. A preprocessor is
        handed over as it is: make one with a longer `sequence_length` for longer rows.

    Raises:
        TypeError: if `model` is no such model.
        ValueError: if `new_length` is not longer, `how` is unknown, or the positional method has no
            table with a row per position.

    Example:
        >>> model = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, max_sequence_length=512)
        >>> extend_positions(model, 704).max_sequence_length
        704
    """
    backbone = backbone_of(model)
    _check(backbone, new_length, how)
    extended = copy_with(model, {"max_sequence_length": int(new_length)})
    tables = positions.get(backbone.position).absolute_tables
    for old, new in zip(model.weights, extended.weights, strict=True):
        value = keras.ops.convert_to_numpy(old)
        new.assign(_HOW[how](value, new_length) if old.path.endswith(tables) else value)
    return extended


def _check(backbone, new_length, how):
    if how not in _HOW:
        raise ValueError(f"`how` must be one of {list(_HOW)}. Received: how={how!r}")
    if not positions.get(backbone.position).absolute_tables:
        reason = "takes sequences of any length as it is"
        if backbone.has_length_limit:
            reason = "has tables that cannot be made longer; build it with what you need"
            if "k" in backbone.position_options:
                reason += ", or with a clipping distance `k`, which takes any length"
        extendable = sorted(n for n, method in positions.METHODS.items() if method.absolute_tables)
        raise ValueError(
            f"The position method {backbone.position!r} has no table with one row per position: "
            f"it {reason}. Methods with one: {extendable}. Received: a model with "
            f"position={backbone.position!r}, position_options={backbone.position_options!r}"
        )
    old_length = backbone.max_sequence_length
    if not is_integer(new_length) or new_length <= old_length:
        raise ValueError(
            "`new_length` must be an integer above the model's max_sequence_length="
            f"{old_length}. Shorter sequences need no change. Received: new_length={new_length!r}"
        )
    if old_length < 2 and how != "drop_absolute":
        raise ValueError(
            "A table with [CLS] alone has no rows to stretch or repeat. Use how='drop_absolute'. "
            f"Received: a model with max_sequence_length={old_length}"
        )


def _interpolate(table, length):
    places = np.linspace(1, len(table) - 1, length - 1)
    before = np.floor(places).astype(int)
    after = np.minimum(before + 1, len(table) - 1)
    share = (places - before).reshape(-1, *[1] * (table.ndim - 1))
    words = (1 - share) * table[before] + share * table[after]
    return np.concatenate([table[:1], words])


def _repeat(table, length):
    return np.concatenate([table[:1], table[1 + np.arange(length - 1) % (len(table) - 1)]])


def _drop(table, length):
    return np.zeros((length, *table.shape[1:]), table.dtype)


_HOW = {"interpolate": _interpolate, "repeat": _repeat, "drop_absolute": _drop}
