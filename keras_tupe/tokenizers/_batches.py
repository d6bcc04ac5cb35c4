"""Texts and ids of users as tensors; mistakes are answered with a sentence."""

import numpy as np
import tensorflow as tf


def string_batch(strings):
    """Returns a tensor, array or list of strings as a string tensor of shape (batch,)."""
    strings = string_tensor(strings)
    if strings.shape.rank != 1:
        raise ValueError(
            "Texts must be a batch of strings with the shape (batch,). Put a single string into a "
            f"list, and a pair of batches into a tuple. Received: shape {strings.shape}"
        )
    return strings


def string_tensor(strings):
    """As `string_batch`, of any shape."""
    if isinstance(strings, tf.RaggedTensor):
        raise ValueError(
            "Texts must be a batch of strings with the shape (batch,). Join the parts of each text "
            f"first. Received: a ragged tensor of shape {strings.shape}"
        )
    if isinstance(strings, (list, tuple)) and not strings:
        return tf.zeros([0], tf.string)
    try:
        tensor = tf.convert_to_tensor(strings)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "Texts must be strings of valid Unicode, or lists, arrays or tensors that hold nothing "
            f"else. Received: {strings!r:.80}"
        ) from error
    if tensor.dtype != tf.string:
        raise TypeError(
            "Texts must be strings. Token ids and numbers go straight to the model, without a "
            f"preprocessor. Received: dtype {tensor.dtype.name}, {strings!r:.80}"
        )
    return tensor


def holds_strings(values):
    """Returns whether `values` (tensor, array, list or scalar) holds text."""
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    dtype = getattr(values, "dtype", None)
    if dtype is None:
        return isinstance(values, (str, bytes))
    if isinstance(dtype, tf.DType):
        return dtype == tf.string
    if getattr(dtype, "kind", "") == "O":
        return holds_strings(np.asarray(values).ravel().tolist())
    return getattr(dtype, "kind", "") in ("U", "S")


def id_batch(ids):
    """Returns a ragged or dense tensor, array or list of lists as ragged int32 of rank 2."""
    if isinstance(ids, (list, tuple)) and all(isinstance(row, (list, tuple)) for row in ids):
        if not any(len(row) for row in ids):
            return tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0] * len(ids))
        ids = tf.ragged.constant(ids, ragged_rank=1)
    if not isinstance(ids, tf.RaggedTensor):
        ids = tf.convert_to_tensor(ids)
    if not ids.dtype.is_integer:
        raise TypeError(f"Token ids must be integers. Received: dtype {ids.dtype.name}")
    if ids.shape.rank != 2:
        raise ValueError(
            f"Token ids must have the shape (batch, length). Received: shape {ids.shape}"
        )
    if not isinstance(ids, tf.RaggedTensor):
        ids = tf.RaggedTensor.from_tensor(ids)
    return tf.cast(ids, tf.int32)
