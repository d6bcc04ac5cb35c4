"""Floating-point operations that a training step needs."""


def step_flops(
    *,
    num_layers,
    hidden_dim,
    intermediate_dim,
    vocabulary_size,
    batch_size,
    length,
    num_slots,
    embedding_dim=None,
    num_keys=None,
):
    """Returns the model FLOPs of one step of masked language modeling.

    Equation, with L layers, width m, feed-forward width f, vocabulary V, B rows of n tokens and s
    masked slots per row; a multiplication and an addition are two operations, and the backward
    pass does each matrix product twice, once for each factor:

        flops = 6 B n L 4 m m               query, key, value, output
              + 6 B (n (L - 1) + s) 2 m f   feed-forward networks, the last one as the head
              + 12 B n c L m                query-key products and weighted values
              + 6 B s (m e + e V)           head, at the masked slots only
              + 6 B n e m                   embeddings to hidden states, if e is given; else e = m

    Not counted: gathering embeddings, the pooler (not part of this task), biases, normalizations,
    softmax, the optimizer, and what positional methods do, so that the utilisation of two methods
    differs by their speed alone. Padding and unused slots count like tokens; nothing counts twice
    where an implementation computes it twice (the convention of Chowdhery et al. 2022).

    Args:
        num_layers: number L of encoder blocks.
        hidden_dim: width m of the hidden states.
        intermediate_dim: width f of the feed-forward networks.
        vocabulary_size: number V of tokens.
        batch_size: rows B of a step, all replicas together.
        length: tokens n per row.
        num_slots: masked slots s per row, see `keras_tupe.data.Masking.num_slots`.
        embedding_dim: width e of the embeddings, or `None` for that of the hidden states.
        num_keys: keys c that are multiplied with a query, or `None` for all n.

    Returns:
        Operations per step, a float.

    Example:
        >>> base = dict(num_layers=12, hidden_dim=768, intermediate_dim=3072)
        >>> flops = step_flops(
        ...     **base, vocabulary_size=32768, batch_size=256, length=512, num_slots=77
        ... )
        >>> f"{flops:.3e}"
        '7.411e+13'

    References:
        Chowdhery et al. PaLM. JMLR 2023, Appendix B. https://arxiv.org/abs/2204.02311
    """
    tokens = batch_size * length
    fed_forward = batch_size * (length * (num_layers - 1) + num_slots)
    width = embedding_dim or hidden_dim
    head_weights = hidden_dim * width + width * vocabulary_size
    return float(
        6 * tokens * num_layers * 4 * hidden_dim**2
        + 6 * fed_forward * 2 * hidden_dim * intermediate_dim
        + 12 * tokens * (num_keys or length) * num_layers * hidden_dim
        + 6 * batch_size * num_slots * head_weights
        + 6 * tokens * (embedding_dim or 0) * hidden_dim
    )
