"""Byte-level vocabularies and merges: read, and checked."""

import json
import os

from keras_tupe.tokenizers._files import read_bytes

MERGES = "merges.txt"


def _printable_bytes():
    """Returns how GPT-2 spells the 256 bytes: those that are printed as themselves, then others."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    spelled = {byte: chr(byte) for byte in printed}
    spelled |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    return tuple(spelled[byte] for byte in range(256))


BYTES = _printable_bytes()  # the spelling of each byte, in order
_BYTE_OF = {character: byte for byte, character in enumerate(BYTES)}


def bytes_of(piece):
    """Returns the bytes that a piece stands for; of a special token with other signs its UTF-8."""
    try:
        return bytes(_BYTE_OF[character] for character in piece)
    except KeyError:
        return piece.encode("utf-8")


def as_pieces(vocabulary):
    """Returns the pieces of a vocabulary in the order of their ids.

    Args:
        vocabulary: dictionary from pieces to ids, or the path of a JSON file with one.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `ByteLevelBpe`.
    """
    where, error = "", TypeError
    if isinstance(vocabulary, (str, os.PathLike)):
        where, error = f", in {os.fspath(vocabulary)!r}", ValueError
        vocabulary = _read_json(vocabulary)
    if not isinstance(vocabulary, dict):
        raise error(
            "A byte-level vocabulary must be a dictionary from pieces to ids, or the path of a "
            f"JSON file with one. Received: {type(vocabulary).__name__}{where}"
        )
    for piece, index in vocabulary.items():
        if not isinstance(piece, str) or isinstance(index, bool) or not isinstance(index, int):
            raise error(
                "A byte-level vocabulary must go from strings to integers. "
                f"Received: {piece!r:.40}: {index!r:.40}{where}"
            )
    pieces = sorted(vocabulary, key=vocabulary.get)
    for expected, piece in enumerate(pieces):
        if vocabulary[piece] != expected:
            raise ValueError(
                "The ids of a vocabulary must be 0, 1, 2, ..., each once. Received: "
                f"{piece!r:.40} with the id {vocabulary[piece]}, where {expected} is expected"
                f"{where}"
            )
    return pieces


def as_merges(merges, vocabulary):
    """Returns the merges as a list of pairs of pieces, first ones first.

    Args:
        merges: list of pairs or of strings, the path of a file, or `None` for the file beside the
            vocabulary.
        vocabulary: the path of the vocabulary, or a dictionary.

    Raises:
        TypeError, ValueError, FileNotFoundError: as `ByteLevelBpe`.
    """
    if merges is None and isinstance(vocabulary, (str, os.PathLike)):
        merges = os.path.join(os.path.dirname(os.fspath(vocabulary)), MERGES)
    if isinstance(merges, (str, os.PathLike)):
        lines = _text(merges, "list of merges").split("\n")
        lines = lines[1:] if lines[0].startswith("#version") else lines
        merges = [line.rstrip("\r") for line in lines if line.rstrip("\r")]
    if not isinstance(merges, (list, tuple)):
        raise TypeError(
            "Merges must be a list of pairs of pieces, or the path of a file with one pair on "
            f"each line. Received: {type(merges).__name__}"
        )
    pairs = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in merges]
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(piece, str) and piece for piece in pair):
            raise ValueError(
                "A merge must be of two pieces, with one space between them in a file. "
                f"Received: {' '.join(map(str, pair))!r:.60}"
            )
    return pairs


def check_vocabulary(pieces, merges):
    """Raises `ValueError` if pieces and merges do not make a byte-level vocabulary."""
    known = set(pieces)
    missing = [byte for byte, piece in enumerate(BYTES) if piece not in known]
    if missing:
        raise ValueError(
            "A byte-level vocabulary must have a piece for each of the 256 bytes, so that every "
            "text can be spelled; train it with the whole alphabet. Received: no piece for "
            f"{len(missing)} bytes, such as {bytes(missing[:1])!r}"
        )
    seen = set()
    for pair in merges:
        if pair in seen:
            raise ValueError(
                "A merge must be in the list once, because its position is its rank. "
                f"Received: {' '.join(pair)!r:.60} twice"
            )
        seen.add(pair)
        for piece in (*pair, "".join(pair)):
            if piece not in known:
                raise ValueError(
                    "The pieces of a merge, and what it makes, must be in the vocabulary; are "
                    "the two files of one model? "
                    f"Received: the merge {' '.join(pair)!r:.60} without {piece!r:.60}"
                )


def _read_json(path):
    text = _text(path, "vocabulary")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            "A byte-level vocabulary must be a JSON object from pieces to ids, as vocab.json: "
            f"{error}. Received: {os.fspath(path)!r}"
        ) from None


def _text(path, what):
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A {what} must be a UTF-8 text file. Received: {os.fspath(path)!r}, which is not UTF-8"
        ) from error
