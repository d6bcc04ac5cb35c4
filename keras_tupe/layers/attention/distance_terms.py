"""Terms of the logits with a learned vector per distance."""

from keras import ops

from keras_tupe.layers.attention.distances import (
    clipped_table,
    key_distance_products,
    query_distance_products,
)
from keras_tupe.layers.attention.few_distances import near_table, rows_of_pairs
from keras_tupe.layers.attention.multiplicative_products import (
    all_distances,
    distances_of_block,
    near_and_far,
    near_distances,
)
from keras_tupe.layers.attention.term import Term


class _OfTable(Term):
    """A term with a table `(2 k + 1, heads or 1, key_dim)` by distance, see `distances`.

    It is the last of the tensors `whole`.
    """

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
        super().__init__((query,), whole=(table,))

    def in_loop(self, length, size):
        return QueryDistances(self.rows[0], self._expanded(self.whole[0], length, size))

    def in_window(self, width):
        return QueryDistances(self.rows[0], near_table(self.whole[0], width))

    def on(self, logits, rows, keys, whole, block):
        return logits + query_distance_products(rows[0], whole[0], block)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        vectors = rows_of_pairs(whole[0], i, j)  # (h or 1, i, j, d)
        return logits + ops.sum(ops.expand_dims(rows[0], 3) * ops.expand_dims(vectors, 1), axis=-1)


class KeyDistances(_OfTable):
    """Adds `k_j . a_{j - i}`.

    Args:
        key: `(heads, batch, length, key_dim)`.
        table: the vectors a.
    """

    def __init__(self, key, table):
        super().__init__(keys=(key,), whole=(table,))

    def in_loop(self, length, size):
        table = self._expanded(ops.flip(self.whole[0], axis=0), length, size)
        return KeyDistances(self.keys[0], table)

    def in_window(self, width):
        return KeyDistances(self.keys[0], near_table(self.whole[0], width))

    def on(self, logits, rows, keys, whole, block):
        return logits + key_distance_products(keys[0], whole[0], block)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        vectors = rows_of_pairs(whole[0], i, j)
        return logits + ops.sum(ops.expand_dims(keys[0], 2) * ops.expand_dims(vectors, 1), axis=-1)


class DistanceWeightedProducts(_OfTable):
    """`sum_t q_it k_jt a_{j - i, t}`, a first term.

    Args:
        query, key: `(heads, batch, length, key_dim)`; the query is scaled already.
        table: the vectors a; with fewer than `length` rows it is clipped.
    """

    def __init__(self, query, key, table):
        super().__init__((query,), (key,), (table,))

    def in_rows(self):
        length, (table,) = self.rows[0].shape[2], self.whole
        if length is None or table.shape[0] is None or table.shape[0] >= length:
            return self
        return _NearAndFar(self.rows[0], self.keys[0], table)

    def in_loop(self, length, size):
        query, (key,), (table,) = self.rows[0], self.keys, self.whole
        table = ops.broadcast_to(
            table, (ops.shape(table)[0], ops.shape(query)[0], ops.shape(table)[2])
        )
        return DistanceWeightedProducts(query, key, self._expanded(table, length, size))

    def in_window(self, width):
        return DistanceWeightedProducts(
            self.rows[0], self.keys[0], near_table(self.whole[0], width)
        )

    def on(self, logits, rows, keys, whole, block):
        if block.is_whole:
            return all_distances(rows[0], keys[0], whole[0])
        return distances_of_block(rows[0], keys[0], whole[0], block)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        vectors = ops.expand_dims(rows_of_pairs(whole[0], i, j), 1)
        products = ops.expand_dims(rows[0], 3) * ops.expand_dims(keys[0], 2)
        return ops.sum(products * vectors, axis=-1)


class _NearAndFar(_OfTable):
    """The same with a clipped table: distances up to k are made once, for all rows."""

    def __init__(self, query, key, table):
        ends = ops.stack([table[0], table[-1]])
        super().__init__((query, near_distances(query, key, table)), (key,), (ends,))

    def on(self, logits, rows, keys, whole, block):
        return near_and_far(rows[0], keys[0], rows[1], whole[0], block)
