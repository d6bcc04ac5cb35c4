"""A table of clipped distances, written out for every distance of a sequence."""

from keras import ops


def clipped_table(table, length):
    """Returns the values of the distances 1 - n .. n, those beyond -k and k repeated.

    Args:
        table: `(heads, dim, 2 k + 1)`; entry r belongs to distance r - k.
        length: number of tokens n, an integer or a scalar tensor.

    Returns:
        Tensor `(heads, dim, 2 n)`. Its last entry, of distance n, fills the place that `skew`
        never reads.
    """
    reach = ops.shape(table)[-1] // 2
    distances = ops.arange(2 * length, dtype="int32") - (length - 1)
    return ops.take(table, ops.clip(distances, -reach, reach) + reach, axis=-1)
