"""Refuses a preset that is damaged or hostile, before KerasHub makes what its files name."""

import contextlib
import os
import pathlib
import re

import keras_hub

from keras_tupe import attention_patterns, positions
from keras_tupe._json_file import read_json_object
from keras_tupe._keras_private.files import preset_file
from keras_tupe.models.presets.config_check import check_object
from keras_tupe.models.presets.size_check import check_sizes
from keras_tupe.models.presets.weights_file import weight_shapes

# How Keras's long messages of damaged files begin, and what stands before their reasons.
_DAMAGED = ("could not be deserialized properly", "Full config", "Full object config")
# How KerasHub tells that a preset holds something else than what is asked for.
_OTHER_KINDS = (
    r"Unable to find a subclass of (\w+) that is compatible with (\w+)",
    r"which is not a subclass of calling class `(\w+)`.*directly on `(\w+)`",
)
_CAUSE, _EXAMPLE = "Exception encountered: ", "Example error message for object"
_WEIGHTS = ("model.weights.h5", "model.weights.json", "task.weights.h5")
# What each small file of a preset describes: one of these classes. The encoders and the tokenizer
# add themselves, see
# `PresetClass`.
BASES = {
    "task.json": (keras_hub.models.Task,),
    "preprocessor.json": (keras_hub.models.Preprocessor,),
}


def check_preset(preset):
    """Refuses a preset that should not be loaded.

    Args:
        preset: folder, or whatever else KerasHub takes: then its files are fetched.

    Raises:
        ValueError: if a file leaves the folder by a link, is no JSON, names a class that does
            not belong there, or describes another encoder than the weights; or if the positional
            method is not known here and the preset carries its file.
    """
    files = _files_of(preset)
    contents = {name: _content(files[name], name) for name in BASES if name in files}
    for name, content in contents.items():
        check_object(content, BASES[name], f"The object in {name}", only_keys=True)
    if os.path.isdir(preset):
        for config in _backbone_configs(contents):
            check_known(preset, config)
    shapes = {}
    for name in _WEIGHTS[:2]:
        if name in files:
            shapes |= weight_shapes(files[name])
    if shapes:
        for config in _backbone_configs(contents):
            check_sizes(config, shapes.values(), repr(str(preset)))


@contextlib.contextmanager
def clear_errors(preset):
    """Says of which preset it was that KerasHub could not load it, and why in one line.

    Args:
        preset: as for `check_preset`.

    Raises:
        FileNotFoundError: from `with`, if a file is missing.
        ValueError: if it is damaged in a way that only loading it shows. Errors that are sentences,
            and those of the call itself, are passed on.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"A preset must be whole: {error} Received: {preset!r}") from error
    except (ValueError, TypeError, KeyError, AttributeError, OSError, RuntimeError) as error:
        text = str(error)
        is_damage = any(part in text for part in _DAMAGED)
        if (isinstance(error, ValueError) and "Received" in text) or (
            isinstance(error, TypeError) and not is_damage
        ):
            raise
        for pattern in _OTHER_KINDS:
            found = re.search(pattern, text, re.DOTALL)
            if found:
                wanted, held = found.groups()
                raise ValueError(
                    f"`{wanted}` needs a preset of its own kind, and this one holds a `{held}`: "
                    f"load it by a class for that. Received: {preset!r}"
                ) from error
        _, _, reason = text.partition(_CAUSE)
        _, _, example = text.partition(_EXAMPLE)
        reason = reason or example.partition("\n\n")[2] or text
        lines = [line for line in reason.splitlines() if line.strip()] or [type(error).__name__]
        raise ValueError(
            f"The preset is damaged or of another version: {lines[0]} Received: {preset!r}"
        ) from error


def check_inside(folder, path):
    """Refuses a file of a folder that is not one, or is a link to something outside.

    Links of Hugging Face's cache, from `snapshots/<revision>` to `blobs`, are what they should be.

    Args:
        folder: the folder.
        path: the file in it, which exists.

    Raises:
        ValueError: if it is refused.
    """
    root, real = pathlib.Path(folder).resolve(), pathlib.Path(path).resolve()
    allowed = [root]
    if root.parent.name == "snapshots":
        allowed.append(root.parent.parent / "blobs")
    if not any(real.is_relative_to(each) for each in allowed):
        raise ValueError(
            "The files of a preset must lie in its folder, and this one is a link to elsewhere. If "
            "you trust it, put a copy of the file where the link is. "
            f"Received: {str(path)!r}"
        )
    if not real.is_file():
        raise ValueError(f"A preset must hold plain files. Received: {str(path)!r}, which is none")


def _files_of(preset):
    """Returns the files of a preset that are there: dictionary from name to path."""
    names = (*BASES, *_WEIGHTS)
    if isinstance(preset, str) and os.path.isdir(preset):
        folder = pathlib.Path(preset)
        for path in folder.glob("*.weights.h5"):  # shards too
            check_inside(folder, path)
        found = {name: folder / name for name in names if os.path.lexists(folder / name)}
        for path in found.values():
            check_inside(folder, path)
        return found
    found = {}
    for name in names:
        try:
            found[name] = preset_file(preset, name)
        except FileNotFoundError:
            continue
    return found


def _backbone_configs(contents):
    """Yields the configs of the encoder in checked files: of config.json, and again of a task's."""
    if "config.json" in contents:
        yield contents["config.json"]["config"]
    task = contents.get("task.json")
    if task is not None and isinstance(task["config"].get("backbone"), dict):
        yield task["config"]["backbone"]["config"]


def check_known(folder, config, only_carried=True):
    """Refuses a preset whose position method or attention pattern is not known here.

    Args:
        folder: the preset.
        config: the config of its encoder, a dictionary.
        only_carried: whether to leave out those whose file the preset does not carry, of which
            the encoder itself will say that they are unknown.

    Raises:
        ValueError: if one is not known; the message says how to load it.
    """
    for registry in (positions.REGISTRY, attention_patterns.REGISTRY):
        name = config.get(registry.argument)
        if not isinstance(name, str) or name in registry.records:
            continue
        if registry.carried.of(folder)[0] or not only_carried:
            raise ValueError(
                f"{registry.carried.how_to_load(folder, name)} "
                f"Received: {str(folder)!r} with {registry.argument}={name!r}"
            )


def _content(path, name):
    try:
        return read_json_object(path)
    except ValueError as error:
        raise ValueError(
            f"A preset's {name} must be JSON as `save_to_preset` writes it: {error}. "
            f"Received: {str(path)!r}"
        ) from None
