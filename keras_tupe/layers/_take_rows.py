"""Row lookup whose gradient is dense."""

from keras import ops


def take_rows(table, indices):
    """Returns `table[indices]` with a dense gradient for `table`.

    On TensorFlow the gradient of a gather is a sparse `IndexedSlices`, which XLA under
    a distribution strategy and gradient clipping handle badly. The gradient of a reshape is
    always dense, so the table passes through one first; on other backends it costs nothing.

    Args:
        table: tensor or variable of shape `(rows, width)`.
        indices: integer tensor of any shape, values in `[0, rows)`.

    Returns:
        Tensor of shape `indices.shape + (width,)`.
    """
    table = ops.convert_to_tensor(table)
    return ops.take(ops.reshape(table, (-1, table.shape[1])), indices, axis=0)
