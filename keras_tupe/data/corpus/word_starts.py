"""Which pieces of a vocabulary begin a word, and how many characters each stands for."""

import re

import numpy as np

_BYTE = re.compile("<0x[0-9A-F]{2}>")
# GPT-2's spelling of the bytes 0x80 to 0xBF, with which no character begins
_INNER_BYTES = re.compile("[\u00a1-\u00ac\u00ae-\u00bf\u0122-\u0143]")
_BEGINS = {
    "wordpiece": lambda piece: not piece.startswith("##"),
    "sentencepiece": lambda piece: piece.startswith("\u2581"),
    "byte_pair": lambda piece: piece.startswith("\u0120"),
}
KINDS = ("wordpiece", "sentencepiece")  # those that rows are prepared with
_CHARACTERS = {
    # a word has the space before it
    "wordpiece": lambda piece: len(piece) - 2 if piece.startswith("##") else len(piece) + 1,
    "sentencepiece": lambda piece: 1 if _BYTE.fullmatch(piece) else len(piece),
    "byte_pair": lambda piece: len(_INNER_BYTES.sub("", piece)),
}


def word_starts(pieces, kind):
    """Whether each piece begins a word: what `Masking` needs to mask whole words.

    A WordPiece piece begins a word unless it starts with `##`; punctuation marks are words. A
    SentencePiece piece begins a word if it starts with U+2581, a byte-level one with U+0120, which
    stand for a space; all others, bytes and punctuation among them, go on with the word before.
    Special tokens are words of their own, whatever is said here.

    Args:
        pieces: list of strings, the vocabulary; the position is the id.
        kind: `"wordpiece"`, `"sentencepiece"` or `"byte_pair"`.

    Returns:
        bool, `(vocabulary_size,)`.

    Raises:
        ValueError: if there is no such kind.

    Example:
        >>> word_starts(["[PAD]", "the", "cat", "##s", "."], "wordpiece")
        array([ True,  True,  True, False,  True])
    """
    if kind not in _BEGINS:
        raise ValueError(f"`kind` must be one of {list(_BEGINS)}. Received: kind={kind!r}")
    return np.array([_BEGINS[kind](piece) for piece in pieces], bool)


def piece_characters(pieces, kind):
    """How many characters of text each piece stands for, to compare models by characters.

    A word has the space before it, so that the characters of a text's pieces are those of the text
    with one space before each word, and, for WordPiece, before each punctuation mark. A
    SentencePiece piece has its own U+2581, and one of a byte counts as a character. A byte-level
    piece has the characters that begin in it, so those of a text are exactly the text's.

    Args:
        pieces: list of strings, the vocabulary; the position is the id.
        kind: `"wordpiece"`, `"sentencepiece"` or `"byte_pair"`.

    Returns:
        int64, `(vocabulary_size,)`; special tokens are counted as they are written.

    Raises:
        ValueError: if there is no such kind.

    Example:
        >>> piece_characters(["[PAD]", "the", "cat", "##s", "."], "wordpiece")
        array([6, 4, 4, 1, 2])
    """
    if kind not in _CHARACTERS:
        raise ValueError(f"`kind` must be one of {list(_CHARACTERS)}. Received: kind={kind!r}")
    return np.array([_CHARACTERS[kind](piece) for piece in pieces], "int64")
