"""Facts of rows and presets that a plan needs: read from their records, or assumed."""

import pathlib

from keras_tupe import data
from keras_tupe._json_file import read_json_object
from training.command.variant import Variant, parse

_SIZES = ("num_layers", "hidden_dim", "intermediate_dim")


def rows_facts(folder, scale):
    """Returns a dictionary with `length`, `vocabulary_size` and `rows` of what is pre-trained on.

    Args:
        folder: what `training.prepare` made, or `None`: then `rows`, the number, is `None`, and
            the rest is as the scale assumes it.
        scale: a `Scale` that pre-trains.
    """
    if folder is None:
        assumed = {name: getattr(scale.pretrain, name) for name in ("length", "vocabulary_size")}
        return {**assumed, "rows": None}
    rows = data.PreparedRows(folder)
    return {"length": rows.length, "vocabulary_size": rows.vocabulary.size, "rows": len(rows)}


def preset_facts(folder, scale):
    """Returns the sizes of a preset that is to get another method, and what is wrong with it.

    Args:
        folder: the preset, or `None`: then the sizes are as the scale assumes them.
        scale: a `Scale` with a `preset`.

    Returns:
        Name of a size, or a dictionary with `num_layers`, `hidden_dim` and `intermediate_dim`; and
        a list of sentences.
    """
    if folder is None:
        return scale.preset.size, []
    try:
        config = read_json_object(pathlib.Path(folder) / "config.json")["config"]
        size = {name: config[name] for name in _SIZES}
        limit = config["max_sequence_length"]
        if not all(type(number) is int and number > 0 for number in (*size.values(), limit)):
            raise ValueError("its sizes must be integers above 0")
        own = Variant(config["position"], config["position_options"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, [
            "--preset must be the folder of a preset of this package, with its config.json. "
            f"Received: {str(folder)!r}"
        ]
    found, (before, after) = [], map(parse, scale.positions)
    if own.position != before.position:
        found.append(
            f"--preset must have the positional method {before.text!r}, which is replaced. "
            f"Received: {str(folder)!r} with {own.position!r}"
        )
    if limit < scale.length:
        found.append(
            f"--preset must take {scale.length} tokens at this scale, which is the first of the "
            f"lengths. Received: {str(folder)!r}, which takes {limit}"
        )
    elif (after.options.get("k") or 0) >= limit:
        found.append(
            f"--preset must take more tokens than the clipping distance of {after.text!r}. "
            f"Received: {str(folder)!r}, which takes {limit}"
        )
    return size, found
