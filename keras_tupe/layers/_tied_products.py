"""Products of hidden states with the embedding matrix."""


def tied_products(hidden_states, token_embedding):
    """Returns `x_i . E[w]` for all tokens w, `(..., vocabulary_size)`, in the compute dtype."""
    return token_embedding(hidden_states, reverse=True)
