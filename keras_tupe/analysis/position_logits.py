"""Logits of the first block when the tokens say nothing: positions alone."""

import numpy as np
from keras import ops

from keras_tupe.analysis._checks import check_whole_rows
from keras_tupe.layers._checks import is_integer


def position_logits(backbone, length, token_ids=None):
    """Returns the attention logits of the first block that positions alone make.

    Generic over the methods: the hidden states go through the layers of the method (`embed`,
    `bias`, `shared`) and the logits are asked of the attention of the first block.

    Equation, for x = 0 at every position (tokens without content):

        additive biases, TUPE:  (b^Q . b^K) / sqrt(d) + bias[h, i, j]
        absolute, sinusoidal:   (p_i W^Q + b^Q) . (p_j W^K + b^K) / sqrt(d)
        content-dependent:      what is left of them with the queries b^Q and the keys b^K

    b^Q and b^K are zero at initialization. So a method whose position term is a factor of
    content (rotations, products) shows nothing there; given `token_ids` the sequence repeats one
    token, x = its vector everywhere, and the logits are the mean over these tokens: then too
    all that differs between rows comes from positions.

    Differences from what runs in the model: the normalization of the embeddings (and, in pre-LN
    blocks, the one before the attention) is left out, since it would scale positions by the
    content that is missing here.

    Args:
        backbone: a `TupeBackbone`.
        length: number of tokens, [CLS] included.
        token_ids: optional integers `(tokens,)`, to be repeated. Defaults to no content.

    Returns:
        Array `(num_heads, length, length)`, in the dtype of the logits; of the heads that the
        first block has, where others were removed.

    Raises:
        ValueError: if the length is not a positive integer or above what the method's tables
            provide for, an id is outside the vocabulary, or the method returns a bias or logits
            of another shape.
        TypeError: if the ids are not integers.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, position="tupe_a")
        >>> position_logits(backbone, 7).shape
        (2, 7, 7)
    """
    _check_length(backbone, length)
    trunk = backbone.trunk
    if token_ids is None:
        width = backbone.embedding_dim or backbone.hidden_dim
        x = ops.zeros((1, length, width), dtype=backbone.compute_dtype)
    else:
        ids = _checked_ids(token_ids, backbone.vocabulary_size)
        x = backbone.token_embedding(np.repeat(ids[:, None], length, axis=1))  # (t, n, m)
    x = trunk.position_embedding(x) if trunk.position_embedding else x
    x = trunk.projection(x) if trunk.projection else x
    bias = trunk.position_bias and _checked_bias(trunk.position_bias(x), backbone, len(x), length)
    shared = trunk.shared_positions and trunk.shared_positions(x)
    attention = backbone.blocks[0].attention
    query, key = (dense(x) for dense in (attention.query_dense, attention.key_dense))
    logits = ops.convert_to_numpy(attention.all_logits(query, key, bias, shared))
    expected = (len(x), attention.num_heads, length, length)
    if logits.shape != expected:
        raise ValueError(
            f"The attention of the method {backbone.position!r} must return logits of the shape "
            f"(batch, num_heads, length, length) = {expected}. Received: logits of shape "
            f"{logits.shape}"
        )
    return logits.mean(axis=0)


def _check_length(backbone, length):
    check_whole_rows(backbone)
    if not is_integer(length) or length < 1:
        raise ValueError(f"`length` must be a positive integer. Received: length={length!r}")
    if backbone.has_length_limit and length > backbone.max_sequence_length:
        raise ValueError(
            f"The method {backbone.position!r} has positions for at most max_sequence_length="
            f"{backbone.max_sequence_length} tokens. Received: length={length}"
        )


def _checked_ids(token_ids, vocabulary_size):
    ids = np.asarray(token_ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"`token_ids` must hold integers. Received: token_ids of dtype {ids.dtype}")
    if ids.ndim != 1 or not ids.size or ids.min() < 0 or ids.max() >= vocabulary_size:
        raise ValueError(
            "`token_ids` must have the shape (tokens,), with at least one, each from 0 to "
            f"vocabulary_size - 1 = {vocabulary_size - 1}. Received: token_ids={token_ids!r}"
        )
    return ids.astype("int32")


def _checked_bias(bias, backbone, batch, length):
    expected = (1, len(backbone.config.heads_of_any), length, length)
    shape = tuple(bias.shape)
    if shape not in (expected, (batch, *expected[1:])):
        raise ValueError(
            f"The bias layer of the method {backbone.position!r} must return the shape (1, "
            f"num_heads, length, length) = {expected}. Received: a bias of shape {shape}"
        )
    return bias
