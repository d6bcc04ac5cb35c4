"""Checks of the inputs in the graph of an exported encoder: there is no Python at the door."""

import tensorflow as tf

from keras_tupe.export._names import HUB_NAMES


def checked(inputs, backbone, names=HUB_NAMES, length=None):
    """Returns the inputs, by way of assertions that fail with a sentence.

    Where XLA compiles the graph it leaves assertions out.

    Args:
        inputs: dictionary of int32 `(batch, length)` tensors, named as in Keras.
        backbone: the `TupeBackbone` that takes them.
        names: how a user calls the inputs, by Keras's names.
        length: tokens of a row, for a signature of one length.
    """
    shapes = {name: tf.shape(_of_any_shape(value)) for name, value in inputs.items()}
    rows = shapes["token_ids"]
    below = {"token_ids": backbone.vocabulary_size, "mask_positions": rows[1]}
    if backbone.num_segments:
        below["segment_ids"] = backbone.num_segments
    tests = []
    if length is not None:
        tests.append(
            tf.debugging.Assert(
                tf.equal(rows[1], length),
                [
                    f"`{names['token_ids']}` must have {length} tokens per row: pad or truncate "
                    "them. Received: tokens per row =",
                    rows[1],
                ],
            )
        )
    for name, value in inputs.items():
        if name in below:
            low, high = tf.reduce_min(value), tf.reduce_max(value)
            tests.append(
                tf.debugging.Assert(
                    tf.logical_and(low >= 0, high < below[name]),
                    [
                        f"`{names[name]}` must lie in [0, size). Was the text encoded for another "
                        "model? Received: size, lowest, highest =",
                        below[name],
                        low,
                        high,
                    ],
                )
            )
        axes = 1 if name == "mask_positions" else 2
        tests.append(
            tf.debugging.Assert(
                tf.reduce_all(tf.equal(shapes[name][:axes], rows[:axes])),
                [
                    f"`{names[name]}` must have the {'batch' if axes == 1 else 'shape'} of "
                    f"`{names['token_ids']}`. Received: their shapes =",
                    shapes[name],
                    rows,
                ],
            )
        )
    # else TensorFlow would stop over shapes that it knows before the assertions are asked
    passed_on = _of_any_shape if length is None else tf.identity
    with tf.control_dependencies(tests):
        return {name: passed_on(value) for name, value in inputs.items()}


def _of_any_shape(value):
    """Returns a tensor whose shape is not known before it is computed: TensorFlow takes what a
    signature says of it for true, and what a client sends may be of another length."""
    return tf.compat.v1.placeholder_with_default(value, [None, None])
