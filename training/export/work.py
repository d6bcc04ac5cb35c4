"""An export: made, compared with its model, and then given its name."""

import pathlib
import shutil

import tensorflow as tf

from keras_tupe import export, positions
from keras_tupe._new_folder import new_folder
from keras_tupe.export.portable import random_inputs
from keras_tupe.export.preprocessor import Packing
from keras_tupe.export.served import backbone_of, input_names
from keras_tupe.models import BeamSearch
from training.command.folder_lock import FolderLock
from training.command.tables import table
from training.export.check import check_in_another_process, write_example, write_scores
from training.presets.checks import is_seq2seq
from training.presets.load import load_preset, load_seq2seq, origin

PRESET = "preset"  # where the preset itself is, in an export that has it
_MISTAKES = (tf.errors.OpError, ValueError, TypeError, ImportError, RuntimeError, OSError)
_PARTS = {
    "encoder (ids in)": ("saved_model.pb", "variables/*"),
    "text (strings in)": ("text/**/*",),
    "preprocessor": ("preprocessor/**/*",),
    "preset": (f"{PRESET}/**/*",),
}


def make(settings, command):
    """Exports a preset; `command` is the command line, for the card."""
    try:
        if settings.position_file:
            positions.load_file(settings.position_file)
        with FolderLock(settings.out, beside=True):
            if settings.format == "savedmodel":
                _write_folder(settings, command)
            else:
                model, _ = load_preset(settings.preset)
                print(model.export(settings.out, format=settings.format))
    except _MISTAKES as error:
        raise ValueError(next(iter(str(error).splitlines()), type(error).__name__)) from error


def _write_folder(settings, command):
    """Writes the SavedModels of a preset, and says what is in them."""
    write = _write_pairs if is_seq2seq(settings.preset) else _write_encoder
    out = pathlib.Path(settings.out)
    with new_folder(out) as folder:
        model, length = write(folder, settings)
        if settings.with_preset:
            shutil.copytree(settings.preset, folder / PRESET)
        known = origin(settings.preset)
        facts = {"data": known.pop("data", {}), "metrics": known.pop("metrics", {})}
        facts |= {"config": backbone_of(model).get_config(), "length": length}
        export.write_card(folder, command=command, **facts, trained_with=known)
        check_in_another_process(folder)
    rows = []
    for name, patterns in _PARTS.items():
        files = [file for pattern in patterns for file in out.glob(pattern) if file.is_file()]
        if files:
            size = sum(file.stat().st_size for file in files)
            rows.append([name, f"{size / 1e6:.1f} MB"])
    print(f"\n{table([f'in {out}', 'size'], rows)}")


def _write_encoder(folder, settings):
    """Writes what the preset of an encoder has; returns the model and the tokens of a row."""
    model, text = load_preset(settings.preset)
    known = getattr(text, "sequence_length", None)  # of a preprocessor
    length = settings.length or known or backbone_of(model).max_sequence_length
    if text is not None:
        Packing.of(text).check_length(length)
    export.export_encoder(model, folder, length)
    if text is not None and settings.text:
        writes = hasattr(model, "generate")
        strings = export.export_generator if writes else export.export_text_model
        strings(model, text, folder / "text", length)
    if text is not None:
        export.export_preprocessor(text, folder / "preprocessor", length)
    inputs = random_inputs(model, 4, length)
    write_example(folder, model, {name: inputs[hub] for name, hub in input_names(model).items()})
    return model, length


def _write_pairs(folder, settings):
    """Writes text/ of a model of pairs; returns the model and the tokens of a target at most."""
    model = load_seq2seq(settings.preset)
    length = settings.length or model.preprocessor.decoder_sequence_length
    sampler = "greedy"
    if settings.num_beams > 1:
        sampler = BeamSearch(settings.num_beams, settings.length_penalty)
    top_k = min(40, model.backbone.vocabulary_size)
    text = folder / "text"
    export.export_seq2seq(model, model.preprocessor, text, length, sampler, top_k)
    write_scores(folder, model, length)
    return model, length
