"""A block of query rows of the attention logits."""

import dataclasses

from keras import ops


@dataclasses.dataclass(frozen=True)
class RowBlock:
    """Rows `start` to `start + size` of the logits of a sequence, all keys.

    Rows of the last block may lie beyond the sequence where blocks are steps of a loop; what they
    give is thrown away.

    Attributes:
        start: first row; an integer, or a scalar tensor in a loop.
        size: number of rows, an integer or a scalar tensor.
        length: number of tokens of the sequence, or of keys of a window, an integer or a scalar
            tensor.
        offset: position of the first of the keys, an integer or a scalar tensor; `start` counts
            from there.
    """

    start: object
    size: object
    length: object
    offset: object = 0

    @property
    def is_known(self):
        """Whether the rows are known while the graph is made, as far as distances matter."""
        return all(isinstance(x, int) for x in (self.start, self.size, self.length))

    @property
    def has_first_row(self):
        """Whether row 0 of the sequence may be one of these."""
        return not (isinstance(self.start, int) and isinstance(self.offset, int)) or (
            self.start + self.offset <= 0
        )

    @property
    def end(self):
        """The row after the last."""
        return self.start + self.size

    @property
    def is_whole(self):
        """Whether these are known to be all rows of the sequence."""
        return isinstance(self.start, int) and self.start == 0 and self.size is self.length

    def row_numbers(self):
        """Returns the positions of the rows, int32 `(size,)`."""
        return ops.arange(self.size, dtype="int32") + (self.start + self.offset)

    def key_numbers(self):
        """Returns the positions of the keys, int32 `(length,)`."""
        return ops.arange(self.length, dtype="int32") + self.offset


def whole_sequence(length):
    """Returns the block of all rows.

    Args:
        length: number of tokens, an integer or a scalar tensor.
    """
    return RowBlock(0, length, length)
