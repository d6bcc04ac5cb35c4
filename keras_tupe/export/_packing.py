"""How an export makes rows of texts."""

import dataclasses

from keras_tupe.tokenizers import pack_segments
from keras_tupe.tokenizers.abstract_tokenizer import AbstractTokenizer


@dataclasses.dataclass(frozen=True)
class Packing:
    """A tokenizer and what a preprocessor says about rows.

    Attributes:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        length: tokens per row, or `None` if nothing says so.
        truncate: `"round_robin"` or `"waterfall"`.
        add_start_token: whether rows begin with [CLS].
        add_end_token: whether texts end with [SEP], for models that predict the next token.
    """

    tokenizer: object
    length: int | None = None
    truncate: str = "round_robin"
    add_start_token: bool = True
    add_end_token: bool = True

    @classmethod
    def of(cls, source):
        """Returns the packing of a tokenizer, a `TupeTokenizer`, or a preprocessor.

        Raises:
            TypeError: if it is something else.
        """
        if hasattr(source, "add_start_token"):  # a preprocessor
            return cls(
                source.tokenizer.op,
                source.sequence_length,
                getattr(source, "truncate", cls.truncate),
                source.add_start_token,
                getattr(source, "add_end_token", True),
            )
        tokenizer = getattr(source, "op", source)
        if not isinstance(tokenizer, AbstractTokenizer):
            raise TypeError(
                "A tokenizer must be one of `keras_tupe.tokenizers`, a `TupeTokenizer`, or a "
                f"preprocessor with one. Received: tokenizer={source!r:.200}"
            )
        return cls(tokenizer)

    def check_length(self, length):
        """Raises `ValueError` if a row has no room for a pair of texts."""
        smallest = 4 + len(self.tokenizer.separator_ids)
        if length < smallest:
            raise ValueError(
                f"`length` must be at least {smallest}: the special tokens of a pair of texts and "
                f"a piece of each. Received: length={length}"
            )

    def rows(self, segments, length):
        """Returns ids, mask and segments of `pack_segments`, by the names of Keras."""
        values = pack_segments(
            self.tokenizer, tuple(segments), length, self.truncate, self.add_start_token
        )
        return dict(zip(("token_ids", "padding_mask", "segment_ids"), values, strict=True))
