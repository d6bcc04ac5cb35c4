"""A WordPiece vocabulary of another library, with or without TensorFlow."""

import os
import pathlib

from keras_tupe.models import TupeMaskedLMPreprocessor, TupeTokenizer
from keras_tupe.models._kept_tokenizer import can_read_text, kept_tokenizer

IDS_ONLY = "the model takes token ids only"
ONLY_SAVED = (
    "the vocabulary is saved with the model, but text needs tensorflow_text, which is not "
    "installed here"
)
BERT_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_MAX_PIECE_BYTES = 256  # as in keras_tupe.tokenizers.WordPiece


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


def wordpiece_tokenizer(pieces, lowercase, path, special=BERT_TOKENS):
    """Returns the tokenizer of a vocabulary, if ours can use it, and notes for the report.

    Without TensorFlow the tokenizer can be saved but not used.

    Args:
        pieces: list of strings.
        lowercase: whether text is lower-cased and stripped of accents.
        path: where the pieces come from, for the notes.
        special: the special tokens that must be among them. Defaults to BERT's.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences.
    """
    reason = _why_unusable(pieces, special)
    if reason is None and can_read_text():
        try:
            return TupeTokenizer(pieces, lowercase=lowercase), ()
        except (ValueError, TypeError, RuntimeError) as error:  # as the op says
            reason = next(iter(str(error).splitlines()), type(error).__name__)
    if reason is not None:
        return None, (f"ours cannot use {os.fspath(path)!r}: {reason}; so {IDS_ONLY}",)
    content = "".join(f"{piece}\n" for piece in pieces).encode("utf-8")
    return kept_tokenizer("wordpiece", [content], lowercase), (ONLY_SAVED,)


def _why_unusable(pieces, special):
    """Returns what in a vocabulary our WordPiece would refuse, in a few words, or `None`.

    It would say so itself, but where TensorFlow is missing only after the conversion, to whoever
    loads the preset.
    """
    places = {}
    for place, piece in enumerate(pieces):
        if not piece or any(character.isspace() for character in piece):
            what = "has white space in it" if piece else "is empty"
            return f"line {place + 1} {what}"
        if "\0" in piece:
            return f"line {place + 1} has a NUL in it"
        if piece in places:
            return f"line {place + 1} repeats {piece!r} of line {places[piece] + 1}"
        if len(piece.removeprefix("##").encode("utf-8")) > _MAX_PIECE_BYTES:
            return f"line {place + 1} has more than {_MAX_PIECE_BYTES} bytes"
        places[piece] = place
    missing = [piece for piece in special if piece not in places]
    return f"it lacks {', '.join(missing)}" if missing else None


def preprocessor_of(tokenizer, backbone, kind=TupeMaskedLMPreprocessor):
    """Returns the preprocessor of a task; `None` without a tokenizer.

    Args:
        tokenizer: a `TupeTokenizer` or `None`.
        backbone: the task's `TupeBackbone`.
        kind: class of the preprocessor. Defaults to that of a masked LM.
    """
    if tokenizer is None:
        return None
    return kind(
        tokenizer,
        sequence_length=backbone.max_sequence_length,
        segments=bool(backbone.num_segments),
    )
