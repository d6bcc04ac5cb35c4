"""The heads of a layer among those of its encoder."""

from keras import ops

from keras_tupe.layers._checks import is_integer


def checked_heads(shared_heads, num_heads):
    """Returns the numbers of a layer's heads as a tuple, or `None`.

    Raises:
        ValueError: if they are not as many ascending numbers as the layer has heads.
    """
    if shared_heads is None:
        return None
    heads = tuple(shared_heads)
    are_numbers = all(is_integer(head) and head >= 0 for head in heads)
    if not are_numbers or len(heads) != num_heads or list(heads) != sorted(set(heads)):
        raise ValueError(
            f"`shared_heads` must be {num_heads} ascending numbers from 0 on, one for each head "
            f"of the layer. Received: shared_heads={shared_heads!r}"
        )
    return heads


def take_heads(x, heads, axis):
    """Returns the entries of some heads, or all if `heads` is `None`, with a dense gradient."""
    if heads is None:
        return x
    return ops.take(ops.reshape(x, ops.shape(x)), list(heads), axis=axis)  # see `take_rows`
