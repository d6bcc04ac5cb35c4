"""[CLS] freed from distance in content-dependent logits."""

from keras import ops


def replace_cls(logits, row, column):
    """Returns the logits with row 0 replaced by `row` and the rest of column 0 by `column`.

    Args:
        logits: `(..., length, length)`.
        row: broadcasts to `(..., 1, length)`.
        column: broadcasts to `(..., length, 1)`.
    """
    is_first = ops.equal(ops.arange(ops.shape(logits)[-1], dtype="int32"), 0)
    logits = ops.where(is_first, column, logits)
    return ops.where(ops.expand_dims(is_first, -1), row, logits)  # last: (0, 0) is the row's


def untie_cls(logits, query, key, factors, pair_logits):
    """Returns the logits with [CLS] freed: one factor for its row, one for its column.

    Args:
        logits: `(batch, heads, length, length)`.
        query: `(batch, length, heads, dim)`.
        key: the same.
        factors: what stands instead of a distance in row 0, and in column 0.
        pair_logits: (query, key, factor) -> logits of all pairs if they all had that factor.
    """
    row = pair_logits(query[:, :1], key, factors[0])
    column = pair_logits(query, key[:, :1], factors[1])
    return replace_cls(logits, row, column)
