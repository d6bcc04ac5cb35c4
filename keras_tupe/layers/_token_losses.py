"""Cross-entropy of many tokens over a vocabulary, without the logits of all of them at once."""

import keras
from keras import ops

from keras_tupe.layers._parts import at_least_float32

_LOGITS = 2**23  # of one chunk: 32 MiB in float32, of which two or three are alive
_FEWEST = 64  # tokens of a chunk, however large the vocabulary is


def token_losses(hidden_states, embeddings, labels, *, accuracy=False, chunk=None):
    """Returns the cross-entropy of each token's label, and whether it is the likeliest token.

    Equation, with x_t the hidden state of a token and E the matrix of the token embedding:

        z_t = x_t E^T
        loss_t = log sum_w exp(z_t[w]) - z_t[label_t]
        d loss_t / d z_t = softmax(z_t) - onehot(label_t)

    Tokens are taken in chunks, one after the other. What is kept for the backward pass are the
    hidden states alone: it computes the logits of each chunk again, a third more work than if they
    were kept. Where one chunk holds all tokens their softmax is kept, and nothing is computed
    twice. There is no second derivative. On other backends than TensorFlow and JAX all logits are
    held at once.

    Args:
        hidden_states: floats `(..., hidden_dim)`.
        embeddings: floats `(vocabulary_size, hidden_dim)`, of the same dtype.
        labels: integers `(...)`. A label outside the vocabulary is an error of TensorFlow on a CPU,
            and elsewhere not a number.
        accuracy: whether to tell which labels are the likeliest. Defaults to `False`: zeros.
        chunk: tokens at a time, at least 1. Defaults to as many as have logits of 32 MiB.

    Returns:
        `(losses, hits)`, both `(...)` in at least float32; hits are 1 or 0.
    """
    vocabulary_size, hidden_dim = embeddings.shape
    rows = ops.reshape(hidden_states, (-1, hidden_dim))
    flat = ops.cast(ops.reshape(labels, (-1,)), "int32")
    sizes = _sizes(ops.shape(rows)[0], chunk or max(_LOGITS // vocabulary_size, _FEWEST))
    found = _of_rows()(rows, embeddings, flat, sizes, accuracy)
    return tuple(ops.reshape(values, ops.shape(labels)) for values in found)


def _sizes(count, chunk):
    """Returns (number of chunks, tokens of each), tensors if the number of tokens is not known."""
    if not isinstance(count, int):
        chunks = ops.maximum(-(-count // chunk), 1)
        return chunks, ops.maximum(-(-count // chunks), 1)
    chunks = max(-(-count // chunk), 1)
    return chunks, max(-(-count // chunks), 1)


def _of_rows():
    backend = keras.backend.backend()
    return {"tensorflow": _on_tensorflow, "jax": _on_jax}.get(backend, _at_once)


def _at_once(rows, table, labels, sizes, accuracy):
    logits = ops.matmul(rows, ops.transpose(table))
    logits = ops.cast(logits, at_least_float32(logits.dtype))
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    return losses, _hits(logits, labels, accuracy)


def _hits(logits, labels, accuracy):
    if not accuracy:
        return ops.zeros_like(logits[:, 0])
    likeliest = ops.cast(ops.argmax(logits, axis=-1), "int32")
    return ops.cast(ops.equal(likeliest, labels), logits.dtype)


def _in_chunks(rows, sizes):
    """Returns `(n, ...)` as `(chunks, tokens, ...)`, with zeros behind the last row."""
    chunks, size = sizes
    missing = chunks * size - ops.shape(rows)[0]
    if not isinstance(missing, int) or missing:
        rows = ops.pad(rows, [(0, missing)] + [(0, 0)] * (len(rows.shape) - 1))
    return ops.reshape(rows, (chunks, size, *rows.shape[1:]))


def _on_tensorflow(rows, table, labels, sizes, accuracy):
    import tensorflow as tf

    wide = at_least_float32(rows.dtype.name)
    count = tf.shape(rows)[0]

    def forward(table, rows, labels):
        """Returns the losses, the hits and the softmax of a chunk."""
        logits = tf.cast(tf.matmul(rows, table, transpose_b=True), wide)
        shares = tf.nn.softmax(logits)
        chosen = tf.gather(logits, labels[:, None], batch_dims=1, name="label_of_class")[:, 0]
        top, top_share = tf.reduce_max(logits, axis=-1), tf.reduce_max(shares, axis=-1)
        losses = top - chosen - tf.math.log(top_share)
        is_class = tf.logical_and(labels >= 0, labels < table.shape[0])
        losses = tf.where(is_class, losses, tf.constant(float("nan"), losses.dtype))
        return losses, _hits(logits, labels, accuracy), shares

    def backward(table, rows, labels, shares, upstream):
        """Returns the gradients of a chunk's rows and of the table."""
        indices = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
        slopes = tf.tensor_scatter_nd_sub(shares * upstream[:, None], indices, upstream)
        slopes = tf.cast(slopes, rows.dtype)
        of_table = tf.matmul(slopes, rows, transpose_a=True)
        return tf.matmul(slopes, table), tf.cast(of_table, wide)

    @tf.custom_gradient
    def at_once(rows, table):
        losses, hits, shares = forward(table, rows, labels)

        def gradient(upstream, _):
            of_rows, of_table = backward(table, rows, labels, shares, upstream)
            return of_rows, tf.cast(of_table, table.dtype)

        return (losses, hits), gradient

    @tf.custom_gradient
    def one_by_one(rows, table):
        given = _in_chunks(rows, sizes), _in_chunks(labels, sizes)
        losses, hits = tf.map_fn(
            lambda one: forward(table, *one)[:2],
            given,
            parallel_iterations=1,
            fn_output_signature=(wide, wide),
        )

        def gradient(upstream, _):
            chunks, upstreams = tf.shape(given[0])[0], _in_chunks(upstream, sizes)

            def body(index, of_table, array):
                some, some_labels = (tf.gather(x, index) for x in given)
                shares = forward(table, some, some_labels)[2]
                of_rows, more = backward(
                    table, some, some_labels, shares, tf.gather(upstreams, index)
                )
                return index + 1, of_table + more, array.write(index, of_rows)

            array = tf.TensorArray(rows.dtype, chunks, element_shape=given[0].shape[1:])
            _, of_table, array = tf.while_loop(
                lambda index, *_: index < chunks,
                body,
                (tf.constant(0), tf.zeros(table.shape, wide), array),
                parallel_iterations=1,
            )
            of_rows = tf.reshape(array.stack(), [-1, rows.shape[1]])[:count]
            return tf.reshape(of_rows, tf.shape(rows)), tf.cast(of_table, table.dtype)

        return tuple(tf.reshape(x, [-1])[:count] for x in (losses, hits)), gradient

    is_one = isinstance(sizes[0], int) and sizes[0] == 1
    return (at_once if is_one else one_by_one)(rows, table)


def _on_jax(rows, table, labels, sizes, accuracy):
    import jax

    wide = at_least_float32(keras.backend.standardize_dtype(rows.dtype))
    count = rows.shape[0]

    def logits_of(table, rows):
        return ops.cast(rows @ table.T, wide)

    def scores(table, rows, labels):
        logits = logits_of(table, rows)
        chosen = jax.numpy.take_along_axis(logits, labels[:, None], axis=1, mode="fill")[:, 0]
        losses = jax.nn.logsumexp(logits, axis=-1) - chosen
        is_class = (labels >= 0) & (labels < table.shape[0])
        return jax.numpy.where(is_class, losses, float("nan")), _hits(logits, labels, accuracy)

    @jax.custom_vjp
    def one_by_one(rows, table, labels):
        given = _in_chunks(rows, sizes), _in_chunks(labels, sizes)
        found = jax.lax.map(lambda one: scores(table, *one), given)
        return tuple(values.reshape(-1)[:count] for values in found)

    def forward(*given):
        return one_by_one(*given), given

    def backward(given, upstream):
        rows, table, labels = given

        def body(of_table, one):
            some, some_labels, some_upstream = one
            shares = jax.nn.softmax(logits_of(table, some), axis=-1)
            slopes = shares - jax.nn.one_hot(some_labels, table.shape[0], dtype=wide)
            slopes = (slopes * some_upstream[:, None]).astype(some.dtype)
            return of_table + (slopes.T @ some).astype(wide), slopes @ table

        chunks = tuple(_in_chunks(x, sizes) for x in (rows, labels, upstream[0]))
        of_table, of_rows = jax.lax.scan(body, jax.numpy.zeros(table.shape, wide), chunks)
        of_rows = of_rows.reshape(-1, rows.shape[1])[:count]
        return of_rows, of_table.astype(table.dtype), None

    one_by_one.defvjp(forward, backward)
    return one_by_one(rows, table, labels)
