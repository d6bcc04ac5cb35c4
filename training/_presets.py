"""Presets of this package, loaded as what they are."""

import json
import pathlib

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeTextClassifier, TupeTokenizer, positions

_TASKS = {kind.__name__: kind for kind in (TupeMaskedLM, TupeTextClassifier)}
_ERRORS = (OSError, ValueError, TypeError, KeyError, AttributeError, ImportError)


def load_preset(folder):
    """Returns the model of a preset, and its tokenizer.

    Args:
        folder: what `save_to_preset` of a `TupeBackbone`, `TupeMaskedLM` or `TupeTextClassifier`
            wrote.

    Returns:
        The model, without its preprocessor, and a `TupeTokenizer`, or `None` if there is none.

    Raises:
        ValueError: if it is no such folder, or cannot be loaded.
    """
    folder = pathlib.Path(folder)
    config = _json(folder / "config.json")
    if not str(config.get("registered_name", "")).startswith("keras_tupe>"):
        raise ValueError(
            "The preset must be a folder of this package, with a config.json of a TupeBackbone, as "
            "`training.pretrain`, `training.convert` and `save_to_preset` write it. "
            f"Received: {str(folder)!r}"
        )
    position = config.get("config", {}).get("position")
    if position not in positions.METHODS:
        raise ValueError(
            "The preset's position method is not known here. Name the Python file that defines it: "
            "--position-file on the command line, `keras_tupe.positions.load_file` in Python. "
            f"Received: {str(folder)!r} with position={position!r}"
        )
    task = _json(folder / "task.json").get("class_name")
    try:
        if task in _TASKS:
            model = _TASKS[task].from_preset(str(folder), preprocessor=None)
        else:
            model = TupeBackbone.from_preset(str(folder))
        has_tokenizer = (folder / "tokenizer.json").is_file()
        tokenizer = TupeTokenizer.from_preset(str(folder)) if has_tokenizer else None
    except _ERRORS as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"The preset is damaged or of another version: {reason} Received: {str(folder)!r}"
        ) from error
    return model, tokenizer


def origin(folder):
    """Returns what is known of a preset's making: the run of `training.pretrain` that it ends.

    Returns:
        Dictionary, empty if there is no such run beside the preset.
    """
    run = pathlib.Path(folder).resolve().parent
    record = _json(run / "settings.json")
    found = {name: record[name] for name in ("command", "commit", "data") if name in record}
    try:
        names, *_, last = (run / "valid.csv").read_text(encoding="utf-8").split()
        return {
            **found,
            "metrics": dict(zip(names.split(","), map(float, last.split(",")), strict=True)),
        }
    except (OSError, ValueError):
        return found


def _json(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
