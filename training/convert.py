"""Turns other people's weights into a preset of this package, and back.

    python -m training.convert checkpoint_best.pt --dictionary dict.txt --out presets/tupe_r
    python -m training.convert bert-base-uncased --out presets/bert
    python -m training.convert presets/bert --graft qkr_4 --out presets/bert_qkr_4 \\
        --graft-options '{"share_heads": true}'
    python -m training.convert presets/bert_qkr_4 --format huggingface --out bert_hf

SOURCE is a released TUPE checkpoint (a .pt file), or the local folder of a Hugging Face BERT, of
a preset of KerasHub's BERT, or of a preset of ours; which of them is seen from its files. With
`--graft` the positional method is replaced. The report says which weights were kept, dropped and
new. Nothing is downloaded, and no code in checkpoints is run.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import pathlib
import signal
import sys

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeTextClassifier, convert, positions
from keras_tupe._json_file import parse_json
from keras_tupe._new_folder import check_is_new, new_folder
from keras_tupe.convert.hugging_face.config import read_json
from training.command.checks import no_folder
from training.command.folder_lock import FolderLock
from training.presets.folder import check_preset_space

FORMATS = ("preset", "huggingface")
_OURS = "keras_tupe>"
_KERAS_HUB = ("keras_hub>", "keras_nlp>")
_TASKS = {"TupeMaskedLM": TupeMaskedLM, "TupeTextClassifier": TupeTextClassifier}
_DTYPES = ("float64", "bfloat16", "float16")
_MISTAKES = (ValueError, TypeError, ImportError, OSError, RuntimeError)


def read_source(source, dictionary=None):
    """Returns a model made from a checkpoint of any kind, and the reports on it.

    Args:
        source: path of a file or folder.
        dictionary: optional path of the `dict.txt` of a TUPE checkpoint.

    Returns:
        `(model, reports)`; there is no report on a preset of ours.

    Raises:
        ValueError: if it is none of the kinds, or as its reader says.
        FileNotFoundError: if a file is missing.
    """
    path = pathlib.Path(source)
    if path.is_file():
        model, report = convert.from_tupe_checkpoint(path, dictionary)
        return model, [report]
    if dictionary is not None:
        raise ValueError(
            "--dictionary belongs to a TUPE checkpoint, a .pt file. "
            f"Received: --dictionary {dictionary!r} for {str(source)!r}"
        )
    config = _config(path)
    name = str(config.get("registered_name"))
    if name.startswith(_OURS):
        return _our_preset(path), []
    if name.startswith(_KERAS_HUB):
        model, report = convert.from_keras_hub_bert(path)
    elif "model_type" in config:
        model, report = convert.from_hf_bert(path)
    else:
        raise ValueError(
            "The config.json of SOURCE must have `model_type` (Hugging Face) or `registered_name` "
            f"(KerasHub, or a preset of ours). Received: {str(source)!r} with neither"
        )
    return model, [report]


def write_preset(model, folder):
    """Writes a preset into a new folder, which appears when it is complete."""
    with new_folder(folder) as partial:
        check_preset_space(model, partial.parent)
        model.save_to_preset(str(partial))


def _config(folder):
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(
            "SOURCE must be a .pt file, or a folder with a config.json: of a Hugging Face model or "
            f"of a preset. Received: {str(folder)!r}"
        )
    return read_json(path)


def _our_preset(folder):
    # absolute, since KerasHub reads a plain name as one of its own presets first
    folder = folder.resolve()
    kind = TupeBackbone
    if (folder / "task.json").is_file():
        kind = _TASKS.get(read_json(folder / "task.json").get("class_name"), TupeBackbone)
    try:
        return kind.from_preset(str(folder), dtype=_dtype(folder))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"SOURCE must be a whole preset: {reason}. Received: {str(folder)!r}"
        ) from error


def _dtype(folder):
    """Returns the type of a preset's weights, which KerasHub would change to the session's."""
    content = read_json(folder / "config.json")
    for name in ("config", "dtype", "config", "name"):
        content = content.get(name) if isinstance(content, dict) else None
    return content if content in _DTYPES else "float32"  # also under mixed policies


def _parser():
    parser = argparse.ArgumentParser(
        prog="convert", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="SOURCE", help="file or folder to convert")
    parser.add_argument("--out", required=True, help="folder to write; it must not exist")
    parser.add_argument("--dictionary", help="dict.txt of a TUPE checkpoint")
    parser.add_argument("--graft", metavar="METHOD", help="positional method to put in")
    parser.add_argument(
        "--graft-options", metavar="JSON", help="options of the method, such as '{\"k\": 64}'"
    )
    parser.add_argument(
        "--graft-length",
        metavar="TOKENS",
        type=int,
        help="tokens that the method's tables provide for. Default: those of SOURCE.",
    )
    parser.add_argument(
        "--position-file", metavar="FILE", help="Python file that defines a positional method"
    )
    parser.add_argument(
        "--format", default="preset", help=f"one of {', '.join(FORMATS)}. Default: preset."
    )
    return parser


def _problems(options):
    """Returns sentences about what cannot work, before any long work."""
    found = []
    if options.format not in FORMATS:
        found.append(f"--format must be one of {list(FORMATS)}. Received: {options.format!r}")
    if options.graft_options is not None and options.graft is None:
        found.append("--graft-options needs --graft. Received: --graft-options alone")
    if options.graft_length is not None:
        if options.graft is None:
            found.append("--graft-length needs --graft. Received: --graft-length alone")
        if options.graft_length < 1:
            found.append(f"--graft-length must be >= 1. Received: {options.graft_length}")
    try:
        check_is_new(options.out)
        found += no_folder(options.out)
    except ValueError as error:
        found.append(str(error))
    try:
        if options.position_file is not None:
            positions.load_file(options.position_file)
        if options.graft is not None:
            positions.get(options.graft).resolve(_graft_options(options))
    except (ValueError, TypeError) as error:
        found.append(str(error))
    return found


def _graft_options(options):
    try:
        given = parse_json(options.graft_options or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ValueError(
            "--graft-options must be a JSON object, such as '{\"share_heads\": true}'. "
            f"Received: {options.graft_options!r}"
        )
    return given


def _convert(options):
    """Does what the command line asks for; returns the reports."""
    model, reports = read_source(options.source, options.dictionary)
    if options.graft is not None:
        model, report = convert.graft_position(
            model, options.graft, _graft_options(options), options.graft_length
        )
        reports.append(report)
    write = {"preset": write_preset, "huggingface": convert.to_hf_bert}[options.format]
    write(model, options.out)
    return reports


def main(arguments=None):
    """Runs the command line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    problems = _problems(options)
    if problems:
        parser.exit(2, "".join(f"convert: {problem}\n" for problem in problems))
    # an end like any other, so that nothing is left behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with FolderLock(options.out, beside=True):
            reports = _convert(options)
    except KeyboardInterrupt:
        parser.exit(130, "convert: stopped; nothing was written\n")
    except _MISTAKES as error:
        if getattr(error, "errno", None):  # of the system, not one of our sentences
            error = f"{error.strerror}; nothing was written. Received: {options.out!r}"
        parser.exit(2, f"convert: {error}\n")
    for report in reports:
        print(f"{report}\n")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
