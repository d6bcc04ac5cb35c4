"""Batches in parts, and sums over replicas."""

import tensorflow as tf


def all_reduced(context, tensors):
    """Returns tensors summed over all replicas."""
    if context.num_replicas_in_sync == 1:
        return tensors
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)


def map_tensors(function, data):
    """Maps the tensors of a structure; there may be no weights."""
    return tf.nest.map_structure(lambda x: None if x is None else function(x), data)


def in_parts(tensor, parts):
    """Returns `(rows, ...)` as `(parts, rows / parts, ...)`."""
    return tf.reshape(tensor, tf.concat([[parts, -1], tf.shape(tensor)[1:]], 0))


def checks_of_rows(data, parts):
    """Refuses a batch that cannot be cut into equal parts.

    Returns:
        Operations that refuse it when it comes, where its size is not known before.

    Raises:
        ValueError: where it is known.
    """
    tensor = tf.nest.flatten(data)[0]
    rows = tensor.shape[0]
    sentence = (
        f"The rows of each replica's batch must be a multiple of micro_batches={parts}. Batch with "
        "`drop_remainder=True`"
    )
    if rows is None:  # several workers, or a last batch that may be short
        rows = tf.shape(tensor)[0]
        return [tf.debugging.assert_equal(rows % parts, 0, message=f"{sentence}. Received others")]
    if rows % parts:
        raise ValueError(f"{sentence}. Received: a batch of {rows} rows per replica")
    return []
