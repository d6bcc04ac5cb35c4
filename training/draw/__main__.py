"""Draw what positional methods do: per head, with [CLS] apart from the words.

    python -m training.draw tupe_r t5
    python -m training.draw my_method.py --size base --length 128
    python -m training.draw --model saved_models/quickstart/preset
    python -m training.draw --model saved_models/quickstart/preset --text "Open the file." notes.txt

Without --model every METHOD is drawn in an encoder at initialization. Position logits of the
first block, tables of weights by distance, and, of a text, attention scores averaged over the
text's paragraphs. Each head gets the name of its pattern, see `keras_tupe.analysis`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import pathlib
import sys

from keras_tupe import SIZES
from keras_tupe.analysis.attention_patterns import FEWEST_WORDS
from training.command.checks import no_folder
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file
from training.command.tables import table
from training.draw import sources
from training.draw.collect import drawings_of

LENGTH = 64


def parse(arguments):
    """Returns the settings of a command line; all mistakes are named at once."""
    parser = argparse.ArgumentParser(
        prog="draw", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("methods", nargs="*", metavar="METHOD", help="positional method, or a .py file of one")
    add("--model", metavar="PRESET", help="preset folder of a trained encoder")
    add("--text", nargs="+", metavar="TEXT", help="texts, or UTF-8 files of paragraphs")
    add("--size", default="tiny", help=f"without --model: {', '.join(SIZES)}. Default: tiny.")
    add("--seed", type=int, default=0, help="without --model: of the weights, >= 0. Default: 0.")
    add("--length", type=int, help=f"tokens, [CLS] included. Default: {LENGTH}, or the model's.")
    add("--out", default="pictures", help="folder to write. Default: pictures.")
    settings = parser.parse_args(arguments)
    problems = []
    if not settings.methods and settings.model is None:
        problems.append("name at least one METHOD, or give a --model. Received: neither")
    if settings.text and settings.model is None:
        problems.append(
            "--text needs a --model: an encoder at initialization has no tokenizer and has "
            "learned nothing about text. Received: --text without --model"
        )
    if settings.size not in SIZES:
        problems.append(f"--size must be one of {list(SIZES)}. Received: {settings.size!r}")
    if settings.seed < 0:
        problems.append(f"--seed must be an integer >= 0. Received: {settings.seed}")
    if settings.length is not None and settings.length <= FEWEST_WORDS:
        problems.append(
            f"--length must be at least {FEWEST_WORDS + 1}, [CLS] and {FEWEST_WORDS} words. "
            f"Received: {settings.length}"
        )
    problems += no_folder(settings.out)
    if problems:
        parser.exit(2, "".join(f"draw: {problem}\n" for problem in problems))
    return settings


def collect(settings):
    """Returns all the pictures that the settings ask for; writes nothing.

    Raises:
        ValueError: if one of them cannot be drawn.
    """
    names = {name: sources.load_method(name) for name in settings.methods}
    files = {name for name in names if name.endswith(".py")}
    if settings.model is None:
        length = settings.length or LENGTH
        origin = f"at initialization ({settings.size}, seed {settings.seed})"
        found = []
        for argument, name in names.items():
            with sources.blaming(files & {argument}):
                encoder = sources.initial_encoder(name, settings.size, length, settings.seed)
                found += drawings_of(encoder, length, origin)
        return found
    encoder = sources.saved_encoder(settings.model, list(names.values()))
    length = settings.length or min(LENGTH, encoder.max_sequence_length)
    origin = f"preset {'/'.join(pathlib.Path(settings.model).resolve().parts[-2:])}"
    text = None
    if settings.text:
        texts = sources.read_texts(settings.text)
        text = sources.tokenize(settings.model, texts, length)
    with sources.blaming(files):
        return drawings_of(encoder, length, origin, text)


def write(drawings, folder):
    """Writes the pictures, each complete or not at all."""
    folder = pathlib.Path(folder)
    with FolderLock(folder, "draw"):
        for drawing in drawings:
            replaced_file(folder / drawing.file, drawing.write)


def main(arguments=None):
    """Runs the command line."""
    settings = parse(arguments)
    try:
        drawings = collect(settings)
        write(drawings, settings.out)
    except (ValueError, OSError) as error:
        sys.exit(f"draw: {error}")
    rows = [[drawing.file, *row] for drawing in drawings for row in drawing.rows]
    print(table(["file", "head", "pattern", "Toeplitz energy", "rank"], rows))
    print(f"\n{len(drawings)} pictures in {settings.out}")


if __name__ == "__main__":
    main()
