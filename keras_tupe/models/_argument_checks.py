"""Checks of the sizes of an encoder, and of what its weights are shared by."""

from keras_tupe.layers import TokenEmbedding
from keras_tupe.layers._checks import check_positive_integers, is_integer


def check_sizes(num_segments, **sizes):
    """Refuses impossible sizes.

    Args:
        num_segments: number of segments, 0 for none.
        **sizes: `num_heads`, `hidden_dim` and other sizes, which must be positive.

    Raises:
        ValueError: if one of them is impossible.
    """
    check_positive_integers(**sizes)
    if not is_integer(num_segments) or num_segments < 0:
        raise ValueError(
            "`num_segments` must be an integer >= 0, where 0 means that the model takes no "
            f"`segment_ids`. Received: num_segments={num_segments!r}"
        )
    num_heads, hidden_dim = sizes["num_heads"], sizes["hidden_dim"]
    if hidden_dim % num_heads:
        raise ValueError(
            "`hidden_dim` must be divisible by `num_heads`, because every head gets an equal "
            f"share. Received: hidden_dim={hidden_dim}, num_heads={num_heads}"
        )


def check_sharing(embedding_dim, num_groups, num_layers):
    """Refuses impossible widths of embeddings and numbers of groups.

    Args:
        embedding_dim: width of the embeddings, or `None`.
        num_groups: number of blocks with weights of their own, or `None`.
        num_layers: number of layers.

    Raises:
        ValueError: if one of them is no positive integer, or the groups do not divide the layers.
    """
    if embedding_dim is not None:
        check_positive_integers(embedding_dim=embedding_dim)
    if num_groups is None:
        return
    check_positive_integers(num_groups=num_groups)
    if num_layers % num_groups:
        raise ValueError(
            "`num_groups` must divide `num_layers`: the same number of layers uses each block. "
            f"Received: num_groups={num_groups}, num_layers={num_layers}"
        )


def check_token_embedding(layer, vocabulary_size, width):
    """Refuses an embedding of another model that has other sizes.

    Args:
        layer: a `TokenEmbedding`, or `None`.
        vocabulary_size: number of tokens that it must have.
        width: size of its vectors.

    Raises:
        TypeError: if it is none.
        ValueError: if its sizes are others.
    """
    if layer is None:
        return
    if not isinstance(layer, TokenEmbedding):
        raise TypeError(
            "`token_embedding` must be a `keras_tupe.layers.TokenEmbedding`, such as that of "
            f"another backbone. Received: {type(layer).__name__}"
        )
    if (layer.vocabulary_size, layer.hidden_dim) != (vocabulary_size, width):
        raise ValueError(
            "`token_embedding` must have the vocabulary of the model and vectors of its embedding "
            f"width, here {vocabulary_size} and {width}. Received: {layer.vocabulary_size} and "
            f"{layer.hidden_dim}"
        )
