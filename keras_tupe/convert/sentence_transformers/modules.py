"""The small files of a sentence-transformers folder: modules, pooling, length, prompts."""

import dataclasses
import os
import pathlib

from keras_tupe import _json_file
from keras_tupe.convert.hugging_face.files import read_json
from keras_tupe.layers._checks import is_integer
from keras_tupe.models.presets import check_inside

MODULES = "modules.json"
_KNOWN = (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize"))
_POOLINGS = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
# By the kind of model that the library knew when it wrote the folder.
_KINDS = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
_TRANSFORMER_FILES = tuple(f"sentence_{kind}_config.json" for kind in _KINDS)
_PROMPTS_FILE = "config_sentence_transformers.json"
_TOKENIZER_FILE = "tokenizer_config.json"


@dataclasses.dataclass(frozen=True)
class EmbedderSettings:
    """What a folder says beside its encoder.

    Attributes:
        transformer: folder of the encoder, a `pathlib.Path`.
        pooling: `"mean"`, `"cls"` or `"max"`.
        normalize: whether vectors are scaled to length 1.
        length: longest text, in tokens, special ones included, or `None` if nothing says so.
        lowercase: whether text is lower-cased before the tokenizer gets it.
        notes: sentences for the report.
    """

    transformer: pathlib.Path
    pooling: str
    normalize: bool
    length: int | None
    lowercase: bool
    notes: tuple


def read_settings(folder):
    """Returns the `EmbedderSettings` of a folder.

    Args:
        folder: path of the folder.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged or lies elsewhere, or naming all that has no counterpart
            here: other modules, other poolings, a prompt before every text.
    """
    folder = pathlib.Path(folder)
    places = _places(folder)
    pooling, problems = _pooling(_read(folder, places["Pooling"] / "config.json"))
    notes, more = _prompts(folder)
    problems += more
    transformer = folder / places["Transformer"]
    entries = _first(folder, [places["Transformer"] / name for name in _TRANSFORMER_FILES])
    tokenizer = _first(folder, [places["Transformer"] / _TOKENIZER_FILE])
    lengths = [entries.get("max_seq_length"), tokenizer.get("model_max_length")]
    if lengths[0] is not None and not (is_integer(lengths[0]) and lengths[0] > 0):
        problems.append(f"max_seq_length must be an integer > 0, not {lengths[0]!r}")
    if problems:
        raise ValueError(
            "This sentence-transformers folder has no counterpart here: "
            f"{'; '.join(problems)}. Received: {os.fspath(folder)!r}"
        )
    return EmbedderSettings(
        transformer=transformer,
        pooling=pooling,
        normalize="Normalize" in places,
        length=next((int(x) for x in lengths if is_integer(x) and 0 < x < 10**9), None),
        lowercase=bool(entries.get("do_lower_case")),
        notes=tuple(notes),
    )


def _places(folder):
    """Returns where each module of a folder is: dictionary from its name to a relative path."""
    path = folder / MODULES
    if not path.is_file():
        raise FileNotFoundError(
            f"A sentence-transformers folder must hold {MODULES}. Received: {os.fspath(folder)!r}"
        )
    check_inside(folder, path)
    try:
        modules = _json_file.read_json(path)
    except ValueError as error:
        raise ValueError(f"{MODULES} must be JSON: {error}. Received: {str(path)!r}") from None
    fields = ("type", "path")
    if not isinstance(modules, list) or not all(
        isinstance(one, dict) and all(isinstance(one.get(field), str) for field in fields)
        for one in modules
    ):
        raise ValueError(
            f"{MODULES} must list modules with a `type` and a `path`. Received: {str(path)!r}"
        )
    names = tuple(
        one["type"].rsplit(".", 1)[-1] if one["type"].startswith("sentence_transformers.") else None
        for one in modules
    )
    if names not in _KNOWN:
        received = ", ".join(f"{one['type']} ({one['path']!r})" for one in modules)
        raise ValueError(
            "The modules of a sentence-transformers folder must be a Transformer, a Pooling and, "
            "if vectors are normalized, a Normalize; others, such as a Dense after the pooling, "
            f"have no counterpart here. Received: {str(path)!r} with {received}"
        )
    for one in modules:  # a list must not make us read files elsewhere
        if not _is_inside(folder, one["path"]):
            raise ValueError(
                f"A module must lie in its folder. Received: {str(path)!r} with {one['path']!r}"
            )
    return {name: pathlib.Path(one["path"]) for name, one in zip(names, modules, strict=True)}


def _is_inside(folder, path):
    try:
        return (folder / path).resolve().is_relative_to(folder.resolve())
    except (ValueError, OSError):  # what no file can be called, and links in a circle
        return False


def _pooling(config):
    """Returns the name of the pooling, and a list of problems."""
    start, modes = "pooling_mode_", list(_POOLINGS.values())
    if isinstance(config.get("pooling_mode"), str):  # from sentence-transformers 6 on
        mode = config["pooling_mode"]
        if mode in modes:
            return mode, []
        return None, [f"pooling_mode must be one of {modes}, not {mode!r}"]
    chosen = [name.removeprefix(start) for name, on in config.items() if name[:13] == start and on]
    if len(chosen) == 1 and chosen[0] in _POOLINGS:
        return _POOLINGS[chosen[0]], []
    return None, [
        f"the pooling must be one of {[start + name for name in _POOLINGS]}, "
        f"not {' and '.join(start + name for name in chosen) or 'none'}"
    ]


def _prompts(folder):
    """Returns notes about prompts, and a list of problems."""
    config = _first(folder, [pathlib.Path(_PROMPTS_FILE)])
    prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
    is_text = isinstance(prompts, dict) and isinstance(default, str | None)
    if not is_text or not all(isinstance(text, str) for text in prompts.values()):
        return [], ["prompts must be texts by name, and default_prompt_name one of these names"]
    texts = {name: text for name, text in prompts.items() if text}
    if default is not None and texts.get(default):
        return [], [f"default_prompt_name={default!r}: no text is put before others here"]
    return [
        f"the prompt {name!r} is not applied: write {text!r} before texts that need it"
        for name, text in texts.items()
    ], []


def _first(folder, names):
    """Returns the content of the first of these files that is there, or an empty dictionary."""
    for name in names:
        if (folder / name).is_file():
            return _read(folder, name)
    return {}


def _read(folder, name):
    if (folder / name).is_file():
        check_inside(folder, folder / name)
    return read_json(folder / name)
