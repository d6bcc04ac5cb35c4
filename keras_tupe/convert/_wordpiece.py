"""A WordPiece vocabulary of another library, with or without TensorFlow."""

import importlib.util
import os
import pathlib

from keras_tupe.models import TupeMaskedLMPreprocessor, TupeTokenizer

_FILE = "vocabulary.txt"


def read_pieces(path):
    """Returns the lines of a vocabulary file.

    Raises:
        ValueError: if it is not UTF-8.
    """
    try:
        text = pathlib.Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            "A WordPiece vocabulary must be a UTF-8 text file with one piece per line. "
            f"Received: {os.fspath(path)!r}, which is not UTF-8"
        ) from error
    # only at line ends: str.splitlines would also cut at Unicode's separators
    lines = [line.rstrip("\r") for line in text.split("\n")]
    return lines[:-1] if not lines[-1] else lines


def checked_size(pieces, vocabulary_size, path):
    """Raises `ValueError` if a vocabulary and a model have different sizes."""
    if len(pieces) != vocabulary_size:
        raise ValueError(
            "The vocabulary must have as many pieces as the model has token vectors, which is "
            f"{vocabulary_size}. Take its own vocabulary, or remove the file and feed ids. "
            f"Received: {len(pieces)} pieces in {os.fspath(path)!r}"
        )


def wordpiece_tokenizer(pieces, lowercase):
    """Returns a tokenizer, which without TensorFlow can be saved but not used, and notes.

    Args:
        pieces: list of strings.
        lowercase: whether text is lower-cased and stripped of accents.
    """
    if importlib.util.find_spec("tensorflow_text") is not None:
        return TupeTokenizer(pieces, lowercase=lowercase), ()
    tokenizer = TupeTokenizer(kind="wordpiece", lowercase=lowercase)
    content = "".join(f"{piece}\n" for piece in pieces).encode("utf-8")
    tokenizer.save_assets = lambda folder: pathlib.Path(folder, _FILE).write_bytes(content)
    note = "the vocabulary is saved with the model, but text needs tensorflow_text, which is not "
    return tokenizer, (note + "installed here",)


def preprocessor_of(tokenizer, backbone):
    """Returns the preprocessor of a masked LM; `None` without a tokenizer."""
    if tokenizer is None:
        return None
    return TupeMaskedLMPreprocessor(
        tokenizer,
        sequence_length=backbone.max_sequence_length,
        segments=bool(backbone.num_segments),
    )
