"""An export: made, compared with its model, and then given its name."""

import pathlib
import shutil

import tensorflow as tf

from keras_tupe import TupeCausalLM, positions
from keras_tupe._new_folder import new_folder
from keras_tupe.export import (
    export_encoder,
    export_generator,
    export_litert,
    export_onnx,
    export_preprocessor,
    export_text_model,
    write_card,
)
from keras_tupe.export._packing import Packing
from training.command.folder_lock import FolderLock
from training.command.tables import table
from training.export.check import check_in_another_process, random_inputs, write_example
from training.export.pairs import write_pairs
from training.presets.checks import is_seq2seq
from training.presets.load import load_preset, load_seq2seq, origin

PRESET = "preset"  # where the preset itself is, in an export that has it
_MISTAKES = (tf.errors.OpError, ValueError, TypeError, ImportError, RuntimeError, OSError)


def export(settings, command):
    """Exports a preset.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the card.

    Raises:
        ValueError: if something cannot be exported; nothing was written.
    """
    try:
        if settings.position_file:
            positions.load_file(settings.position_file)
        with FolderLock(settings.out, beside=True):
            if settings.format == "savedmodel":
                export_saved_model(settings, command)
            else:
                export_portable(settings)
    except _MISTAKES as error:
        raise ValueError(next(iter(str(error).splitlines()), type(error).__name__)) from error


def export_saved_model(settings, command):
    """Writes the SavedModels of a preset, and says what is in them.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the card.

    Raises:
        ValueError: if something cannot be exported.
    """
    is_pairs = is_seq2seq(settings.preset)
    model, text = (
        (load_seq2seq(settings.preset), None) if is_pairs else load_preset(settings.preset)
    )
    out = pathlib.Path(settings.out)
    with new_folder(out) as folder:
        if is_pairs:
            length = write_pairs(folder, model, settings)
        else:
            length = _write_encoder(folder, model, text, settings)
        if settings.with_preset:
            shutil.copytree(settings.preset, folder / PRESET)
        known = origin(settings.preset)
        write_card(
            folder,
            command=command,
            config=getattr(model, "backbone", model).get_config(),
            length=length,
            data=known.pop("data", {}),
            metrics=known.pop("metrics", {}),
            trained_with=known,
        )
        check_in_another_process(folder)
    _report(out)


def _write_encoder(folder, model, text, settings):
    """Writes an encoder with what its preset has besides, and its example; returns the length."""
    backbone = getattr(model, "backbone", model)
    known = getattr(text, "sequence_length", None)  # of a preprocessor
    length = settings.length or known or backbone.max_sequence_length
    if text is not None:
        Packing.of(text).check_length(length)
    export_encoder(model, folder, length, settings.dynamic_length)
    if text is not None and settings.text:
        export_text = export_text_model
        if isinstance(model, TupeCausalLM):
            export_text = export_generator
        export_text(model, text, folder / "text", length)
    if text is not None:
        export_preprocessor(text, folder / "preprocessor", length)
    write_example(folder, model, random_inputs(backbone, length))
    return length


def _report(folder):
    parts = {
        "encoder (ids in)": ("saved_model.pb", "variables/*"),
        "text (strings in)": ("text/**/*",),
        "preprocessor": ("preprocessor/**/*",),
        "preset": (f"{PRESET}/**/*",),
    }
    rows = []
    for name, patterns in parts.items():
        files = [file for pattern in patterns for file in folder.glob(pattern) if file.is_file()]
        if files:
            size = sum(file.stat().st_size for file in files)
            rows.append([name, f"{size / 1e6:.1f} MB"])
    print(f"\n{table(['in ' + str(folder), 'size'], rows)}")


def export_portable(settings):
    """Writes one file for another runtime, after comparing the two.

    Args:
        settings: a `Settings` without problems.
    """
    model, _ = load_preset(settings.preset)
    export = {"onnx": export_onnx, "litert": export_litert}[settings.format]
    print(export(model, pathlib.Path(settings.out)))
