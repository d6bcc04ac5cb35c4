"""Sequence lengths: known ones are checked before any graph runs."""

from keras import ops


def checked_length(hidden_states, max_sequence_length, owner):
    """Returns the length of `hidden_states`, after comparing it with the position table.

    Args:
        hidden_states: tensor `(batch, length, hidden_dim)`.
        max_sequence_length: rows of the position table.
        owner: name of the layer, for the message.

    Returns:
        The length, as an integer where it is known and a scalar tensor otherwise.

    Raises:
        ValueError: if the length is known and exceeds the table.
    """
    static = hidden_states.shape[1]
    if static is not None and static > max_sequence_length:
        raise ValueError(
            f"`{owner}` has position embeddings for at most max_sequence_length="
            f"{max_sequence_length} tokens. Truncate the input or build the model with a larger "
            f"`max_sequence_length`. Received: sequence length={static}"
        )
    return ops.shape(hidden_states)[1]
