"""What attention logits are made of: terms, each for a block of query rows.

A term holds tensors of three kinds: those with a row per query, of which a block gets its rows,
those with a row per key, of which a window gets its rows, and those that every block needs whole.
`on` adds the term to the logits of a block, `on_pairs` to those of a few queries or a few keys.
Heads come first: `(heads, batch, rows, length)`.
"""

import abc


class Term(abc.ABC):
    """One term of the logits.

    Args:
        rows: tensors whose second last axis is the query's.
        keys: tensors whose second last axis is the key's.
        whole: tensors that every block needs.
    """

    gains_by_known_blocks = False  # whether a block costs less if the graph knows where it begins

    def __init__(self, rows=(), keys=(), whole=()):
        self.rows, self.keys, self.whole = tuple(rows), tuple(keys), tuple(whole)

    @abc.abstractmethod
    def on(self, logits, rows, keys, whole, block):
        """Returns the logits of a block with this term, `(heads, batch or 1, rows, length)`.

        Args:
            logits: those so far; `None` for the first term.
            rows: the block's part of the tensors `rows`.
            keys: the tensors `keys`, or in a window the block's part of them.
            whole: the tensors `whole`.
            block: a `RowBlock`.
        """

    def on_pairs(self, logits, rows, keys, whole, i, j):
        """Returns the logits of some queries and some keys, of which one or the other are few.

        `NotImplemented` of a term that has no such form: then `on` is used.

        Args:
            logits: those so far; `None` for the first term.
            rows: the queries' part of the tensors `rows`.
            keys: the keys' part of the tensors `keys`.
            whole: the tensors `whole`.
            i: positions of the queries, int32 `(rows, 1)`.
            j: positions of the keys, int32 `(1, columns)`.
        """
        return NotImplemented

    def in_rows(self):
        """Returns the term for blocks of rows that see all keys."""
        return self

    def in_loop(self, length, size):
        """Returns the term for blocks of a loop, where the start of a block is a tensor.

        Args:
            length: number of tokens, an integer or a scalar tensor.
            size: rows of a block, the same.
        """
        return self

    def in_window(self, width):
        """Returns the term for blocks that see a window of keys; `None` if it has no such form.

        Args:
            width: number of keys of a block, an integer: no distance is as large.
        """
        return None
