"""The tokens of a vocabulary that stand for no text."""

import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """How a vocabulary spells its special tokens, and how texts are separated.

    Attributes:
        start: first token of every input ([CLS]).
        end: last token of every text ([SEP]).
        pad: filler after the end.
        mask: stands for a hidden piece; `None` if the vocabulary has none.
        unknown: stands for text that the vocabulary cannot spell.
        separators: number of end tokens between the two texts of a pair.
    """

    start: str
    end: str
    pad: str
    mask: str
    unknown: str
    separators: int

    @property
    def texts(self):
        """The tokens as text, in the order of the attributes."""
        return (self.start, self.end, self.pad, self.mask, self.unknown)

    def ids(self, pieces):
        """Returns the five ids in a list of pieces; `None` for a token that is none."""
        repeated = [piece for piece, count in collections.Counter(pieces).items() if count > 1]
        if repeated:
            raise ValueError(
                "Every piece of a vocabulary must be there once, because its position is its id. "
                f"Remove the repetitions. Received: repeated pieces {repeated[:5]}"
            )
        needed = [text for text in dict.fromkeys(self.texts) if text is not None]
        missing = [text for text in needed if text not in pieces]
        if missing:
            raise ValueError(
                f"The vocabulary lacks {missing}. It needs all of {needed}: train it "
                f"with them. Received: a vocabulary of {len(pieces)} pieces"
            )
        return tuple(None if text is None else pieces.index(text) for text in self.texts)


BERT = SpecialTokens("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", separators=1)
# RoBERTa's tokens around BERT's pieces; its vocabulary holds those of BERT too, as mere pieces.
MPNET = SpecialTokens("<s>", "</s>", "<pad>", "<mask>", "[UNK]", separators=2)
TUPE = SpecialTokens("<s>", "</s>", "<pad>", "<mask>", "<unk>", separators=2)
ALBERT = SpecialTokens("[CLS]", "[SEP]", "<pad>", "[MASK]", "<unk>", separators=1)
# One token begins and ends every text; texts that are joined have it between them.
GPT_2 = SpecialTokens(*["<|endoftext|>"] * 3, None, "<|endoftext|>", separators=1)


def first_known(pieces, *kinds):
    """Returns the first of some `SpecialTokens` that all are in a vocabulary, else the last."""
    known = (kind for kind in kinds if set(kind.texts) <= set(pieces))
    return next(known, kinds[-1])
