"""What attention logits are made of: terms, each for a block of query rows.

A term holds tensors of two kinds: those with a row per query, of which a block gets its rows, and
those that every block needs whole. `on` adds the term to the logits of a block. Heads come first:
`(heads, batch, rows, length)`.
"""

import abc

from keras import ops

from keras_tupe.layers.attention.content import scaled_products
from keras_tupe.layers.attention.distances import (
    clipped_table,
    key_distance_products,
    query_distance_products,
    values_of_block,
)
from keras_tupe.layers.attention.multiplicative_products import (
    all_distances,
    distances_of_block,
    near_and_far,
    near_distances,
)


class Term(abc.ABC):
    """One term of the logits.

    Args:
        rows: tensors whose second last axis is the query's.
        whole: tensors that every block needs.
    """

    gains_by_known_blocks = False  # whether a block costs less if the graph knows where it begins

    def __init__(self, rows=(), whole=()):
        self.rows, self.whole = tuple(rows), tuple(whole)

    @abc.abstractmethod
    def on(self, logits, rows, whole, block):
        """Returns the logits of a block with this term, `(heads, batch or 1, rows, length)`.

        Args:
            logits: those so far; `None` for the first term.
            rows: the block's part of the tensors `rows`.
            whole: the tensors `whole`.
            block: a `RowBlock`.
        """

    def in_loop(self, length, size):
        """Returns the term for blocks of a loop, where the start of a block is a tensor.

        Args:
            length: number of tokens, an integer or a scalar tensor.
            size: rows of a block, the same.
        """
        return self


class Products(Term):
    """`scale * q_i . k_j`, the first term, and a bias on top where there is one.

    Args:
        query: `(heads, batch, length, key_dim)`.
        key: the same.
        scale: a number.
        bias: a `Term` whose logits need none before them, or `None`.
    """

    def __init__(self, query, key, scale, bias=None):
        self.scale, self.bias = scale, bias
        super().__init__(
            (query, *(bias.rows if bias else ())), (key, *(bias.whole if bias else ()))
        )

    def with_bias(self, bias):
        """Returns the same with a bias."""
        return Products(self.rows[0], self.whole[0], self.scale, bias)

    def with_mask(self, mask):
        """Returns the same with a mask that comes out of the product itself, by a channel more.

        Args:
            mask: `(1, batch, 1, length)`, what is added to all logits of a key, before the scale.
        """
        query, key = self.rows[0], self.whole[0]
        shape = (*ops.shape(query)[:3], 1)
        mask = ops.broadcast_to(ops.swapaxes(mask, -1, -2), shape)
        query = ops.concatenate([query, ops.ones(shape, query.dtype)], axis=-1)
        return Products(query, ops.concatenate([key, mask], axis=-1), self.scale, self.bias)

    def in_loop(self, length, size):
        return self.with_bias(self.bias.in_loop(length, size)) if self.bias else self

    def on(self, logits, rows, whole, block):
        bias = self.bias and self.bias.on(None, rows[1:], whole[1:], block)
        return scaled_products(rows[0], whole[0], self.scale, bias)


class Given(Term):
    """Logits that are there already, all of them.

    Args:
        logits: `(heads, batch, length, length)`.
    """

    def __init__(self, logits):
        super().__init__((logits,))

    def on(self, logits, rows, whole, block):
        return rows[0]


class Bias(Term):
    """A position bias, or its parts.

    Args:
        bias: tensor `(1 or batch, heads, length, length)`, or a dictionary with such a `bias`, or,
            where that is empty, of the parts that `position_terms` tells of.
    """

    def __init__(self, bias):
        parts = bias if isinstance(bias, dict) else {"bias": bias}
        self.factors = None  # the whole bias as products of vectors, `(heads, 1, length, rank)`
        if "query" in parts and "distances" not in parts:
            self.factors = tuple(ops.expand_dims(parts[name], 1) for name in ("query", "key"))
        if "bias" in parts:
            is_empty = parts["bias"].shape[-1] == 0
            parts = {name: x for name, x in parts.items() if (name == "bias") != is_empty}
        self._has = tuple(name for name in ("bias", "query", "distances") if name in parts)
        rows, whole = [], []
        if "bias" in parts:
            rows.append(ops.swapaxes(parts["bias"], 0, 1))
        if "query" in parts:
            rows.append(ops.expand_dims(parts["query"], 1))
            whole.append(ops.expand_dims(parts["key"], 1))
        if "distances" in parts:
            whole.append(parts["distances"])
        super().__init__(rows, whole)

    def on(self, logits, rows, whole, block):
        rows, whole = list(rows), list(whole)
        found = [] if logits is None else [logits]
        if "bias" in self._has:
            found.append(rows.pop(0))
        if "query" in self._has:
            found.append(ops.matmul(rows.pop(0), ops.swapaxes(whole.pop(0), -1, -2)))
        if "distances" in self._has:
            found.append(values_of_block(whole.pop(0), block))
        return sum(found[1:], found[0])


class DistanceFactors(Term):
    """Multiplies the logits by a scalar per distance.

    Args:
        values: `(heads or 1, 2 length)`, see `values_of_block`.
    """

    def __init__(self, values):
        super().__init__(whole=(values,))

    def on(self, logits, rows, whole, block):
        return logits * values_of_block(whole[0], block)


class _OfTable(Term):
    """A term with a table `(2 k + 1, heads or 1, key_dim)` by distance, see `distances`."""

    gains_by_known_blocks = True

    @staticmethod
    def _expanded(table, length, size):
        return clipped_table(ops.transpose(table, (1, 2, 0)), length, size)


class QueryDistances(_OfTable):
    """Adds `q_i . a_{j - i}`.

    Args:
        query: `(heads, batch, length, key_dim)`.
        table: the vectors a.
    """

    def __init__(self, query, table):
        super().__init__((query,), (table,))

    def in_loop(self, length, size):
        return QueryDistances(self.rows[0], self._expanded(self.whole[0], length, size))

    def on(self, logits, rows, whole, block):
        return logits + query_distance_products(rows[0], whole[0], block)


class KeyDistances(_OfTable):
    """Adds `k_j . a_{j - i}`.

    Args:
        key: `(heads, batch, length, key_dim)`.
        table: the vectors a.
    """

    def __init__(self, key, table):
        super().__init__(whole=(key, table))

    def in_loop(self, length, size):
        key, table = self.whole
        return KeyDistances(key, self._expanded(ops.flip(table, axis=0), length, size))

    def on(self, logits, rows, whole, block):
        return logits + key_distance_products(*whole, block)


class DistanceWeightedProducts(_OfTable):
    """`sum_t q_it k_jt a_{j - i, t}`, a first term.

    Args:
        query, key: `(heads, batch, length, key_dim)`; the query is scaled already.
        table: the vectors a; with fewer than `length` rows it is clipped.
    """

    def __init__(self, query, key, table):
        length = query.shape[2]
        self._is_clipped = length is not None and table.shape[0] < length
        if self._is_clipped:
            ends = ops.stack([table[0], table[-1]])
            super().__init__((query, near_distances(query, key, table)), (key, ends))
        else:
            super().__init__((query,), (key, table))

    def in_loop(self, length, size):
        if self._is_clipped:
            return self
        query, (key, table) = self.rows[0], self.whole
        table = ops.broadcast_to(
            table, (ops.shape(table)[0], ops.shape(query)[0], ops.shape(table)[2])
        )
        looped = Term.__new__(DistanceWeightedProducts)
        looped._is_clipped = False
        Term.__init__(looped, (query,), (key, self._expanded(table, length, size)))
        return looped

    def on(self, logits, rows, whole, block):
        if self._is_clipped:
            return near_and_far(rows[0], whole[0], rows[1], whole[1], block)
        if block.is_whole:
            return all_distances(rows[0], *whole)
        return distances_of_block(rows[0], *whole, block)


class Cls(Term):
    """Replaces row 0, and column 0 of the other rows.

    Args:
        row: the logits of [CLS] as a query, `(heads, batch or 1, 1, length)`.
        column: the logits of [CLS] as a key, `(heads, batch or 1, length, 1)`.
    """

    def __init__(self, row, column):
        super().__init__((column,), (row,))

    def on(self, logits, rows, whole, block):
        is_first = ops.equal(ops.arange(block.length, dtype="int32"), 0)
        logits = ops.where(is_first, rows[0], logits)
        if isinstance(block.start, int) and block.start > 0:
            return logits
        return ops.where(ops.equal(ops.expand_dims(block.row_numbers(), 1), 0), whole[0], logits)


def untied_cls(query, key, factors, pair_logits):
    """Returns the term that frees [CLS]: one factor for its row, one for its column.

    Args:
        query: `(heads, batch, length, key_dim)`.
        key: the same.
        factors: what stands instead of a distance in row 0, and in column 0.
        pair_logits: (query, key, factor) -> logits of all pairs if they all had that factor.
    """
    row = pair_logits(_first(query), key, factors[0])
    return Cls(row, pair_logits(query, _first(key), factors[1]))


def _first(x):
    heads, batch, _, dim = ops.shape(x)
    return ops.slice(x, (0, 0, 0, 0), (heads, batch, 1, dim))
