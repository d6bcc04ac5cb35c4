"""Row lookup whose gradient is dense, and that takes no index from the end."""

import keras
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


def beyond_if_negative(indices, size):
    """Returns indices with `size`, one beyond the last, in place of negative ones.

    Keras and ONNX count negative indices from the end, so that a mistake would get an answer. One
    beyond the end is an error wherever indices are looked at.

    Args:
        indices: integer tensor.
        size: number of rows, an integer or a scalar tensor.
    """
    if keras.backend.standardize_dtype(indices.dtype) != "int64":
        indices = ops.cast(indices, "int32")  # a narrow type has no room for `size`
    return ops.where(indices < 0, ops.cast(size, indices.dtype), indices)
