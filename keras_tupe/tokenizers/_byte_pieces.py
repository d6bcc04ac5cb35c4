"""Byte-level vocabularies and merges: read, and checked."""

import json
import os

from keras_tupe.tokenizers._files import read_text

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
    """Returns the pieces of a dictionary to ids, or of the JSON file at a path, ordered by id."""
    where = ""
    if isinstance(vocabulary, (str, os.PathLike)):
        where = f", in {os.fspath(vocabulary)!r}"
        vocabulary = _read_json(vocabulary)
    if not isinstance(vocabulary, dict):
        raise (ValueError if where else TypeError)(
            "A byte-level vocabulary must be a dictionary from pieces to ids, or the path of a "
            f"JSON file with one. Received: {type(vocabulary).__name__}{where}"
        )
    pieces = {
        index: piece
        for piece, index in vocabulary.items()
        if isinstance(piece, str) and type(index) is int
    }
    wrong = [index for index in range(len(vocabulary)) if index not in pieces]
    if wrong:
        raise ValueError(
            "A byte-level vocabulary must go from strings to the ids 0, 1, 2, ..., each once. "
            f"Received: {len(vocabulary)} pieces, none with the id {wrong[0]}{where}"
        )
    return [pieces[index] for index in range(len(vocabulary))]


def as_merges(merges, vocabulary):
    """Returns merges as pairs of pieces, first ones first; `None` are beside the vocabulary."""
    if merges is None and isinstance(vocabulary, (str, os.PathLike)):
        merges = os.path.join(os.path.dirname(os.fspath(vocabulary)), MERGES)
    if isinstance(merges, (str, os.PathLike)):
        lines = read_text(merges, "list of merges").split("\n")
        lines = lines[1:] if lines[0].startswith("#version") else lines
        merges = [line.rstrip("\r") for line in lines if line.rstrip("\r")]
    if not isinstance(merges, (list, tuple)):
        raise TypeError(
            "Merges must be a list of pairs of pieces, or the path of a file with one pair on "
            f"each line. Received: {type(merges).__name__}"
        )
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or not all(isinstance(x, str) for x in pair):
            raise ValueError(
                "A merge must be of two pieces, with one space between them in a file. "
                f"Received: {pair!r:.60}"
            )
    return [tuple(pair) for pair in pairs]


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
        is_known = len(pair) == 2 and known.issuperset(pair) and "".join(pair) in known
        if pair in seen or not is_known:
            raise ValueError(
                "A merge must be two pieces of the vocabulary, with one space between them in a "
                "file, and must make another one; it is there once, as its position is its rank. "
                "Are the two files of one model? "
                f"Received: {' '.join(map(str, pair))!r:.60}{' twice' * (pair in seen)}"
            )
        seen.add(pair)


def _read_json(path):
    try:
        return json.loads(read_text(path, "vocabulary"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            "A byte-level vocabulary must be a JSON object from pieces to ids, as vocab.json: "
            f"{error}. Received: {os.fspath(path)!r}"
        ) from None
