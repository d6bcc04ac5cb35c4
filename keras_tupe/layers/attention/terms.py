"""Terms of the logits: products with biases, what is given, scalars by distance, [CLS], pattern."""

import copy
import dataclasses

from keras import ops

from keras_tupe.layers.attention.content import scaled_products
from keras_tupe.layers.attention.distances import values_of_block
from keras_tupe.layers.attention.few_distances import near_values, values_of_pairs
from keras_tupe.layers.attention.masks import MASKED_LOGIT
from keras_tupe.layers.attention.term import Term


class Products(Term):
    """`scale * q_i . k_j`, the first term, and biases on top where there are some.

    Args:
        query: `(heads, batch, length, key_dim)`.
        key: the same.
        scale: a number.
        biases: terms whose logits need none before them.
    """

    def __init__(self, query, key, scale, biases=()):
        self.scale, self.biases = scale, tuple(biases)
        super().__init__(
            (query, *(x for bias in self.biases for x in bias.rows)),
            (key, *(x for bias in self.biases for x in bias.keys)),
            [x for bias in self.biases for x in bias.whole],
        )

    def with_bias(self, bias):
        """Returns the same with a bias more."""
        return self._with([*self.biases, bias])

    def with_mask(self, mask):
        """Returns the same with a mask that comes out of the product itself, by a channel more.

        Args:
            mask: `(1, batch, 1, length)`, what is added to all logits of a key, before the scale.
        """
        query, key = self.rows[0], self.keys[0]
        ones = ops.ones((*ops.shape(query)[:3], 1), query.dtype)
        mask = ops.broadcast_to(ops.swapaxes(mask, -1, -2), (*ops.shape(key)[:3], 1))
        query = ops.concatenate([query, ones], axis=-1)
        return Products(query, ops.concatenate([key, mask], axis=-1), self.scale, self.biases)

    def _with(self, biases):
        return Products(self.rows[0], self.keys[0], self.scale, biases)

    def in_rows(self):
        return self._with([bias.in_rows() for bias in self.biases])

    def in_loop(self, length, size):
        return self._with([bias.in_loop(length, size) for bias in self.biases])

    def in_window(self, width):
        biases = [bias.in_window(width) for bias in self.biases]
        return None if any(bias is None for bias in biases) else self._with(biases)

    def _sum(self, rows, keys, whole, add):
        """Returns the sum of the biases; `None` if there are none."""
        total, at = None, [1, 1, 0]
        for bias in self.biases:
            parts = []
            for number, (given, own) in enumerate(
                zip((rows, keys, whole), (bias.rows, bias.keys, bias.whole), strict=True)
            ):
                parts.append(given[at[number] : at[number] + len(own)])
                at[number] += len(own)
            total = add(bias, total, parts)
        return total

    def on(self, logits, rows, keys, whole, block):
        bias = self._sum(
            rows, keys, whole, lambda bias, total, parts: bias.on(total, *parts, block)
        )
        return scaled_products(rows[0], keys[0], self.scale, bias)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        bias = self._sum(
            rows, keys, whole, lambda bias, total, parts: bias.on_pairs(total, *parts, i, j)
        )
        return scaled_products(rows[0], keys[0], self.scale, bias)


class Given(Term):
    """Logits that are there already, all of them.

    Args:
        logits: `(heads, batch, length, length)`.
    """

    def __init__(self, logits):
        super().__init__((logits,))

    def on(self, logits, rows, keys, whole, block):
        return rows[0]

    def on_pairs(self, logits, rows, keys, whole, i, j):
        return ops.take(rows[0], ops.reshape(j, (-1,)), axis=-1)


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
        rows, keys, whole = [], [], []
        if "bias" in parts:
            rows.append(ops.swapaxes(parts["bias"], 0, 1))
        if "query" in parts:
            rows.append(ops.expand_dims(parts["query"], 1))
            keys.append(ops.expand_dims(parts["key"], 1))
        if "distances" in parts:
            whole.append(parts["distances"])
        super().__init__(rows, keys, whole)

    def in_window(self, width):
        if "bias" in self._has:
            return None
        found = copy.copy(self)
        found.whole = tuple(near_values(values, width) for values in self.whole)
        return found

    def on(self, logits, rows, keys, whole, block):
        return self._sum(logits, rows, keys, lambda: values_of_block(whole[0], block), None)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        return self._sum(logits, rows, keys, lambda: values_of_pairs(whole[0], i, j), j)

    def _sum(self, logits, rows, keys, of_distance, j):
        rows, found = list(rows), [] if logits is None else [logits]
        if "bias" in self._has:
            bias = rows.pop(0)
            found.append(bias if j is None else ops.take(bias, ops.reshape(j, (-1,)), axis=-1))
        if "query" in self._has:
            found.append(ops.matmul(rows.pop(0), ops.swapaxes(keys[0], -1, -2)))
        if "distances" in self._has:
            found.append(of_distance())
        return sum(found[1:], found[0])


class DistanceFactors(Term):
    """Multiplies the logits by a scalar per distance.

    Args:
        values: `(heads or 1, 2 length)`, see `values_of_block`.
    """

    def __init__(self, values):
        super().__init__(whole=(values,))

    def in_window(self, width):
        return DistanceFactors(near_values(self.whole[0], width))

    def on(self, logits, rows, keys, whole, block):
        return logits * values_of_block(whole[0], block)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        return logits * values_of_pairs(whole[0], i, j)


class Pattern(Term):
    """Puts the logits of pairs that do not see each other far below the others.

    Args:
        visible: a `keras_tupe.attention_patterns.Visible`.
        dtype: that of the logits.
        outside: whether keys of global tokens are put there too, which a window has beside it.
    """

    def __init__(self, visible, dtype, outside=False):
        super().__init__()
        self.visible, self._dtype, self._outside = visible, dtype, outside

    def in_window(self, width):
        return Pattern(self.visible, self._dtype, outside=True)

    def on(self, logits, rows, keys, whole, block):
        i = ops.expand_dims(block.row_numbers(), 1)
        return self.on_pairs(logits, rows, keys, whole, i, ops.expand_dims(block.key_numbers(), 0))

    def on_pairs(self, logits, rows, keys, whole, i, j):
        visible = self.visible
        if self._outside and visible.num_global:
            visible = dataclasses.replace(visible, num_global=0)
            allowed = ops.logical_and(visible.allowed(i, j), j >= self.visible.num_global)
        else:
            allowed = visible.allowed(i, j)
        mask = ops.where(allowed, ops.cast(0, self._dtype), ops.cast(MASKED_LOGIT, self._dtype))
        mask = ops.reshape(mask, (1, 1, *ops.shape(mask)))
        return mask if logits is None else logits + mask


class Cls(Term):
    """Replaces row 0, and column 0 of the other rows.

    Args:
        row: the logits of [CLS] as a query, `(heads, batch or 1, 1, length)`.
        column: the logits of [CLS] as a key, `(heads, batch or 1, length, 1)`.
    """

    def __init__(self, row, column):
        super().__init__((column,), (ops.swapaxes(row, -1, -2),))

    def in_window(self, width):
        return self

    def on(self, logits, rows, keys, whole, block):
        is_first = ops.equal(block.key_numbers(), 0)
        logits = ops.where(is_first, rows[0], logits)
        if not block.has_first_row:
            return logits
        is_first = ops.equal(ops.expand_dims(block.row_numbers(), 1), 0)
        return ops.where(is_first, ops.swapaxes(keys[0], -1, -2), logits)

    def on_pairs(self, logits, rows, keys, whole, i, j):
        logits = ops.where(ops.equal(j, 0), rows[0], logits)
        return ops.where(ops.equal(i, 0), ops.swapaxes(keys[0], -1, -2), logits)


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
