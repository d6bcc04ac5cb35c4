"""Cross-entropy over a vocabulary in few passes, on TensorFlow."""

import tensorflow as tf


def sparse_cross_entropy(labels, logits):
    """Returns the cross-entropy of each label, of the shape of the labels.

    Equation, with p the softmax of the logits z of a token:

        loss = max z - z_label - log max p,      d loss / d z = p - onehot(label)

    Kept for the backward pass is p alone, in which the gradient is computed. TensorFlow's own
    operation takes twice the time, and writes a gradient in every forward pass. There is no second
    derivative. A label outside the classes is an error on a CPU, and elsewhere not a number.
    """
    rows = tf.reshape(logits, [-1, logits.shape[-1]])
    losses = _of_rows(tf.reshape(tf.cast(labels, "int64"), [-1]), rows)
    return tf.reshape(losses, tf.shape(labels))


def _of_rows(labels, logits):
    @tf.custom_gradient
    def with_gradient(logits):
        shares = tf.nn.softmax(logits)
        chosen = tf.gather(logits, labels[:, None], batch_dims=1, name="label_of_class")[:, 0]
        top, top_share = tf.reduce_max(logits, axis=-1), tf.reduce_max(shares, axis=-1)
        losses = top - chosen - tf.math.log(top_share)
        classes = tf.shape(logits, out_type=tf.int64)[1]
        is_class = tf.logical_and(labels >= 0, labels < classes)
        losses = tf.where(is_class, losses, tf.constant(float("nan"), losses.dtype))

        def gradient(upstream):
            indices = tf.stack([tf.range(tf.shape(labels)[0], dtype=tf.int64), labels], axis=1)
            return tf.tensor_scatter_nd_sub(shares * upstream[:, None], indices, upstream)

        return losses, gradient

    return with_gradient(logits)
