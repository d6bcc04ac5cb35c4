"""Which pieces of a vocabulary begin a word."""

import numpy as np

_BEGINS = {
    "wordpiece": lambda piece: not piece.startswith("##"),
    "sentencepiece": lambda piece: piece.startswith("\u2581"),
    "byte_pair": lambda piece: piece.startswith("\u0120"),
}
KINDS = tuple(_BEGINS)


def word_starts(pieces, kind):
    """Whether each piece begins a word: what `Masking` needs to mask whole words.

    A WordPiece piece begins a word unless it starts with `##`; punctuation marks are words. A
    SentencePiece piece begins a word if it starts with U+2581, a byte-level one with U+0120, which
    stand for a space; all others, bytes and punctuation among them, go on with the word before. Special tokens are
    words of their own, whatever is said here.

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
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {list(KINDS)}. Received: kind={kind!r}")
    return np.array([_BEGINS[kind](piece) for piece in pieces], bool)
