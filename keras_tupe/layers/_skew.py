"""Rows that start one place later each: how distances become places."""

from keras import ops


def skew(x, width):
    """Returns the matrices whose entry (i, u) is `x[i, rows - 1 + u - i]`.

    The memory of rows of one length is read again in rows that are one shorter, so that each
    starts one place later. Neither an index matrix nor a scatter in the backward pass is needed.

    Args:
        x: `(batch, heads, rows, width + rows)`; the last column is never read.
        width: columns of the answer, an integer or a scalar tensor.

    Returns:
        Tensor `(batch, heads, rows, width)`.
    """
    batch, heads, rows, columns = ops.shape(x)
    # `ops.slice`, because the gradient of x[..., a:b] is many times slower on TensorFlow.
    flat = ops.reshape(x, (batch, heads, rows * columns))
    flat = ops.slice(flat, (0, 0, 0), (batch, heads, rows * (columns - 1)))
    moved = ops.reshape(flat, (batch, heads, rows, columns - 1))
    return ops.slice(moved, (0, 0, 0, rows - 1), (batch, heads, rows, width))
