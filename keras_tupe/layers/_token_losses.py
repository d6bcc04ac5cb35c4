"""Cross-entropy of many tokens over a vocabulary, without the logits of all of them at once."""

import keras
from keras import ops

from keras_tupe.layers._parts import at_least_float32
from keras_tupe.layers.attention.core import over_blocks
from keras_tupe.layers.attention.random_bits import can_draw
from keras_tupe.layers.token_embedding import products

_LOGITS = 2**23  # of one chunk: 32 MiB in float32, of which two or three are alive
_FEWEST = 64  # tokens of a chunk, however large the vocabulary is


def token_losses(hidden_states, embeddings, labels, *, accuracy=False, chunk=None):
    """Returns the losses of tokens, and their hits: 1 if the label is the likeliest token, else 0.

    Equation, with x_t the hidden state of a token and E the matrix of the token embedding:

        z_t = x_t E^T
        loss_t = log sum_w exp(z_t[w]) - z_t[label_t]

    Tokens are taken in chunks, and the backward pass computes the logits of each again, a third
    more work than if they were kept; one chunk of all tokens, the only way on other backends than
    TensorFlow and JAX, keeps them. Labels, losses and hits are `(...)`, the last two at least
    float32. TensorFlow on a CPU refuses a label outside the vocabulary; elsewhere its loss is NaN.
    """
    vocabulary_size, hidden_dim = embeddings.shape
    wide = at_least_float32(keras.backend.standardize_dtype(embeddings.dtype))

    def losses_of(rows, labels, table):
        logits = ops.cast(products(rows, table), wide)
        losses = ops.logsumexp(logits, axis=-1) - _chosen(logits, labels)
        is_class = ops.logical_and(labels >= 0, labels < vocabulary_size)
        hits = ops.zeros_like(losses)
        if accuracy:
            likeliest = ops.cast(ops.argmax(logits, axis=-1), "int32")
            hits = ops.cast(ops.equal(likeliest, labels), wide)
        return ops.where(is_class, losses, float("nan")), hits

    rows = ops.reshape(hidden_states, (-1, hidden_dim))
    flat = ops.cast(ops.reshape(labels, (-1,)), "int32")
    count, chunk = ops.shape(rows)[0], chunk or max(_LOGITS // vocabulary_size, _FEWEST)
    if not can_draw() or (isinstance(count, int) and count <= chunk):
        found = losses_of(rows, flat, embeddings)
    else:
        chunks = -(-count // chunk)  # of one size, the last with zeros at its end
        size = -(-count // ops.maximum(chunks, 1)) if ops.is_tensor(chunks) else -(-count // chunks)

        def framed(x):
            x = ops.pad(x, [(0, chunks * size - count)] + [(0, 0)] * (len(x.shape) - 1))
            return ops.reshape(x, (chunks, size, *x.shape[1:]))

        def of_chunk(_, one, table):
            return ops.stack(losses_of(*one, table))

        starts, given = ops.arange(chunks, dtype="int32"), (framed(rows), framed(flat))
        found = over_blocks(of_chunk, starts, given, embeddings, wide)  # (chunks, 2, size)
        found = [ops.reshape(x, (-1,))[:count] for x in ops.unstack(found, 2, axis=1)]
    return tuple(ops.reshape(x, ops.shape(labels)) for x in found)


def _chosen(logits, labels):
    if keras.backend.backend() != "tensorflow":
        return ops.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    import tensorflow as tf

    return tf.gather(logits, labels[:, None], batch_dims=1, name="label_of_class")[:, 0]
