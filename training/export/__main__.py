"""Export a preset: a reusable SavedModel, or a file for ONNX Runtime or LiteRT.

    python -m training.export runs/tupe_r/preset --out saved_models/tupe_r
    python -m training.export runs/tupe_r/preset --out tupe_r.onnx --format onnx

A SavedModel's folder holds the encoder itself (ids in), `text/` (strings in: embeddings, blanks
to fill, classes), `preprocessor/` (strings to ids) and `card.json`; `text/` and
`preprocessor/` only if the preset has a tokenizer. What is written is loaded again, by another
process or by the format's own runtime, and compared with the model before it gets its name.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import pathlib
import shlex
import signal
import sys

import tensorflow as tf

from keras_tupe import positions
from keras_tupe._new_folder import check_is_new, new_folder
from keras_tupe.export import (
    export_encoder,
    export_litert,
    export_onnx,
    export_preprocessor,
    export_text_model,
    write_card,
)
from keras_tupe.export._packing import Packing
from training.command.checks import no_folder
from training.command.folder_lock import FolderLock
from training.command.tables import table
from training.export.check import check_in_another_process, random_inputs, write_example
from training.presets.load import load_preset, origin

FORMATS = ("savedmodel", "onnx", "litert")


def export_saved_model(settings, command):
    """Writes the SavedModels of a preset, and says what is in them.

    Args:
        settings: the parsed command line.
        command: its text, for the card.

    Raises:
        ValueError: if something cannot be exported.
    """
    model, text = load_preset(settings.preset)
    backbone = getattr(model, "backbone", model)
    known = getattr(text, "sequence_length", None)  # of a preprocessor
    length = settings.length or known or backbone.max_sequence_length
    if text is not None:
        Packing.of(text).check_length(length)
    with new_folder(settings.out) as folder:
        export_encoder(model, folder, length, settings.dynamic_length)
        if text is not None and settings.text:
            export_text_model(model, text, folder / "text", length)
        if text is not None:
            export_preprocessor(text, folder / "preprocessor", length)
        write_example(folder, model, random_inputs(backbone, length))
        known = origin(settings.preset)
        write_card(
            folder,
            command=command,
            config=backbone.get_config(),
            length=length,
            data=known.pop("data", {}),
            metrics=known.pop("metrics", {}),
            trained_with=known,
        )
        check_in_another_process(folder)
    _report(settings.out)


def _report(folder):
    parts = {
        "encoder (ids in)": ("saved_model.pb", "variables/*"),
        "text (strings in)": ("text/**/*",),
        "preprocessor": ("preprocessor/**/*",),
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
        settings: the parsed command line.
    """
    model, _ = load_preset(settings.preset)
    export = {"onnx": export_onnx, "litert": export_litert}[settings.format]
    print(export(model, settings.out))


def _parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("preset", type=pathlib.Path, help="folder of a preset of this package")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="what to make; new")
    parser.add_argument(
        "--position-file", type=pathlib.Path, help="Python file of the preset's own position method"
    )
    parser.add_argument("--format", default=FORMATS[0], help=f"one of {', '.join(FORMATS)}")
    parser.add_argument(
        "--length",
        type=int,
        help="tokens per row in signatures; default: the preprocessor's, or max_sequence_length",
    )
    parser.add_argument(
        "--dynamic-length",
        action="store_true",
        help="add a signature for any length; never let a server batch mixed lengths with it",
    )
    parser.add_argument(
        "--text",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="write text/, which holds the weights a second time",
    )
    return parser


def _problems(settings):
    problems = []
    if settings.format not in FORMATS:
        problems.append(
            f"--format must be one of {', '.join(FORMATS)}. Received: {settings.format!r}"
        )
    elif settings.format != "savedmodel" and (settings.length or settings.dynamic_length):
        problems.append(
            "--length and --dynamic-length are for SavedModels; other formats take any length. "
            f"Received: --format {settings.format}"
        )
    if settings.length is not None and settings.length < 1:
        problems.append(f"--length must be at least 1. Received: {settings.length}")
    if not settings.preset.is_dir():
        problems.append(f"The preset must be a folder. Received: {str(settings.preset)!r}")
    try:
        check_is_new(settings.out)
        problems += no_folder(settings.out)
    except ValueError as error:
        problems.append(str(error))
    return problems


def main(arguments=None):
    """Runs the command line."""
    parser = _parser()
    settings = parser.parse_args(arguments)
    problems = _problems(settings)
    if not problems:
        words = sys.argv[1:] if arguments is None else arguments
        # an end like any other, so that nothing is left behind
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        command = shlex.join(["python", "-m", "training.export", *map(str, words)])
        try:
            if settings.position_file:
                positions.load_file(settings.position_file)
            with FolderLock(settings.out, beside=True):
                if settings.format == "savedmodel":
                    export_saved_model(settings, command)
                else:
                    export_portable(settings)
        except KeyboardInterrupt:
            parser.exit(130, f"{parser.prog}: stopped; nothing was written\n")
        except (
            tf.errors.OpError,
            ValueError,
            TypeError,
            ImportError,
            RuntimeError,
            OSError,
        ) as error:
            problems.append(next(iter(str(error).splitlines()), type(error).__name__))
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))


if __name__ == "__main__":
    main()
