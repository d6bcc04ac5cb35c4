"""The vocabulary of prepared rows."""

import dataclasses
import functools
import pathlib

import numpy as np

from keras_tupe.data.corpus.word_starts import piece_characters, word_starts

STOPS = (".", "\u3002")  # full stops, the second of Chinese and Japanese


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
            return _READERS[self.kind](self.path)
        except (UnicodeDecodeError, RuntimeError) as error:  # the latter of SentencePiece
            raise ValueError(
                f"The vocabulary of prepared rows is no {self.kind} vocabulary: {error}. Prepare "
                f"the rows again. Received: {str(self.path)!r}"
            ) from error

    @functools.cached_property
    def begins_word(self):
        """See `word_starts`."""
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
        found = [number for number, piece in enumerate(self.pieces) if piece.endswith(STOPS)]
        return tuple(number for number in found if number not in self.special_ids)


def _wordpiece(path):
    # only at line ends: str.splitlines would also cut at Unicode's separators
    return tuple(path.read_text("utf-8").removesuffix("\n").split("\n"))


def _sentencepiece(path):
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    return tuple(model.id_to_piece(list(range(model.get_piece_size()))))


_READERS = {"wordpiece": _wordpiece, "sentencepiece": _sentencepiece}
