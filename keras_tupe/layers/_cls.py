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
