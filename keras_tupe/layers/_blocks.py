"""Blocks of rows of a square matrix, and the columns near its diagonal."""

import dataclasses

from keras import ops

# Small blocks waste less at the edges of the band, few blocks make small graphs.
SMALLEST_BLOCK = 64
MOST_BLOCKS = 16


@dataclasses.dataclass(frozen=True)
class RowBlock:
    """Rows `start` to `end`, whose columns `window_start` to `window_end` can be near.

    Columns before the window are further to the left of every row of the block than the reach,
    and columns after it further to the right. All ends are exclusive.
    """

    start: int
    end: int
    window_start: int
    window_end: int

    @property
    def rows(self):
        """Number of rows."""
        return self.end - self.start


def row_blocks(length, reach):
    """Returns the blocks of an n x n matrix, the last of them maybe smaller.

    Args:
        length: number of rows and columns n.
        reach: largest distance between a row and a column that counts as near.

    Example:
        >>> [(block.rows, block.window_start, block.window_end) for block in row_blocks(150, 20)]
        [(64, 0, 84), (64, 44, 148), (22, 108, 150)]
    """
    size = max(SMALLEST_BLOCK, -(-length // MOST_BLOCKS))
    return [
        RowBlock(start, end, max(0, start - reach), min(length, end + reach))
        for start in range(0, length, size)
        for end in [min(start + size, length)]
    ]


def split_rows(x, blocks):
    """Returns the rows of each block of a tensor `(batch, heads, length, ...)`."""
    if len(blocks) == 1:
        return [x]
    return ops.split(x, [block.start for block in blocks[1:]], axis=2)
