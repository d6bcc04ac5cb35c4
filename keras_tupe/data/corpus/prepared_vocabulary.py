"""The vocabulary of prepared rows: which pieces begin a word, and for what they stand."""

import dataclasses
import functools
import pathlib
import re

import numpy as np

from keras_tupe._vocabulary_files import parse_sentencepiece, read_lines
from keras_tupe.check import choice

_STOPS = (".", "\u3002")  # full stops, the second of Chinese and Japanese
_BYTE = re.compile("<0x[0-9A-F]{2}>")
# GPT-2's spelling of the bytes 0x80 to 0xBF, with which no character begins
_INNER_BYTES = re.compile("[\u00a1-\u00ac\u00ae-\u00bf\u0122-\u0143]")
# By kind: whether a piece begins a word; its characters, where a word has the space before it.
_PIECES = {
    "wordpiece": (
        lambda piece: not piece.startswith("##"),
        lambda piece: len(piece) - 2 if piece.startswith("##") else len(piece) + 1,
    ),
    "sentencepiece": (
        lambda piece: piece.startswith("\u2581"),
        lambda piece: 1 if _BYTE.fullmatch(piece) else len(piece),
    ),
    "byte_pair": (
        lambda piece: piece.startswith("\u0120"),
        lambda piece: len(_INNER_BYTES.sub("", piece)),
    ),
}


@dataclasses.dataclass(frozen=True)
class PreparedVocabulary:
    """The vocabulary of a folder of prepared rows, as the folder describes it.

    Args:
        path: `pathlib.Path` of the file.
        sha256: its hash, hexadecimal.
        kind: `"wordpiece"` (a text file, one piece a line) or `"sentencepiece"` (a model).
        size: number of pieces.
        lowercase: whether text is lower-cased.
        start_id: id of [CLS] or <s>.
        end_id: id of [SEP] or </s>.
        pad_id: id of [PAD] or <pad>.
        mask_id: id of [MASK] or <mask>.
        unknown_id: id of [UNK] or <unk>.
        special_ids: the five, ascending.
    """

    path: pathlib.Path
    sha256: str
    kind: str
    size: int
    lowercase: bool
    start_id: int
    end_id: int
    pad_id: int
    mask_id: int
    unknown_id: int
    special_ids: tuple

    @functools.cached_property
    def pieces(self):
        """The pieces, strings; the position is the id."""
        try:
            return tuple(_READERS[self.kind](self.path))
        except ValueError as error:
            raise ValueError(
                f"The vocabulary of prepared rows must be a {self.kind} vocabulary: {error}. "
                f"Prepare the rows again. Received: {str(self.path)!r}"
            ) from error

    @functools.cached_property
    def begins_word(self):
        """The pieces that `word_starts` tells."""
        return word_starts(self.pieces, self.kind)

    @functools.cached_property
    def characters(self):
        """See `piece_characters`; special tokens stand for no character, an unknown one for one."""
        found = piece_characters(self.pieces, self.kind)
        found[list(self.special_ids)] = 0
        found[self.unknown_id] = 1
        return np.maximum(found, 0)

    @functools.cached_property
    def stop_ids(self):
        """Ids of the pieces that a sentence ends with: those with a full stop at their end."""
        found = [number for number, piece in enumerate(self.pieces) if piece.endswith(_STOPS)]
        return tuple(number for number in found if number not in self.special_ids)


_READERS = {
    "wordpiece": read_lines,
    "sentencepiece": lambda path: [x.text for x in parse_sentencepiece(path.read_bytes())[1]],
}
KINDS = tuple(_READERS)  # those that rows are prepared with


def word_starts(pieces, kind):
    """Whether each piece begins a word: what `Masking` needs to mask whole words.

    A WordPiece piece does unless it starts with `##`; punctuation marks are words. A SentencePiece
    piece does if it starts with U+2581, a byte-level one with U+0120, which stand for a space; all
    others, bytes and punctuation among them, go on with the word before. Special tokens are words
    of their own, whatever is said here.

    Args:
        pieces: list of strings, the vocabulary; the position is the id.
        kind: `"wordpiece"`, `"sentencepiece"` or `"byte_pair"`.

    Returns:
        bool, `(vocabulary_size,)`.

    Example:
        >>> word_starts(["[PAD]", "the", "cat", "##s", "."], "wordpiece")
        array([ True,  True,  True, False,  True])
    """
    return np.array([*map(_of_kind(kind)[0], pieces)], bool)


def piece_characters(pieces, kind):
    """How many characters of text each piece stands for, to compare models by characters.

    A word has the space before it, so that the characters of a text's pieces are those of the text
    with one space before each word, and, for WordPiece, before each punctuation mark. A
    SentencePiece piece of a byte counts as a character. A byte-level piece has the characters that
    begin in it, so those of a text are exactly the text's.

    Args:
        pieces, kind: as of `word_starts`.

    Returns:
        int64, `(vocabulary_size,)`; special tokens are counted as they are written.

    Example:
        >>> piece_characters(["[PAD]", "the", "cat", "##s", "."], "wordpiece")
        array([6, 4, 4, 1, 2])
    """
    return np.array([*map(_of_kind(kind)[1], pieces)], "int64")


def _of_kind(kind):
    choice("kind", kind, _PIECES)
    return _PIECES[kind]
