"""Heads of an attention layer: its own among those of an encoder, and gates on them."""

import contextlib
import contextvars

from keras import ops

from keras_tupe.layers._checks import is_integer

_GATES = contextvars.ContextVar("gates of heads", default=None)


def checked_heads(shared_heads, num_heads):
    """Returns the numbers of a layer's heads as a tuple, or `None`.

    Args:
        shared_heads: what the layer was given.
        num_heads: number of its heads.

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
    """Returns the entries of some heads, with a dense gradient.

    Args:
        x: tensor with an axis of heads.
        heads: ascending numbers of heads, or `None` for all.
        axis: that of the heads.
    """
    if heads is None:
        return x
    first, last = heads[0], heads[-1]
    if last - first + 1 == len(heads):
        begin, shape = [0] * len(x.shape), list(ops.shape(x))
        begin[axis], shape[axis] = first, len(heads)
        return ops.slice(x, begin, shape)
    # on TensorFlow a gather has a sparse gradient, and that of x[a:b] is slow
    return ops.concatenate([take_heads(x, run, axis) for run in _runs(heads)], axis=axis)


def _runs(heads):
    """Returns the numbers in tuples of consecutive ones."""
    found = [[heads[0]]]
    for head in heads[1:]:
        if head == found[-1][-1] + 1:
            found[-1].append(head)
        else:
            found.append([head])
    return [tuple(run) for run in found]


def bias_of_heads(position_bias, heads):
    """Returns a position bias, or its parts, of some heads.

    Args:
        position_bias: what a layer gets: `(1 or batch, heads, length, length)`, a dictionary of
            such a `bias` and of parts with heads first, or `None`.
        heads: as above.
    """
    if heads is None or position_bias is None:
        return position_bias
    if isinstance(position_bias, dict):
        return {
            name: take_heads(x, heads, 1 if name == "bias" else 0)
            for name, x in position_bias.items()
        }
    return take_heads(position_bias, heads, 1)


@contextlib.contextmanager
def head_gates(gates):
    """Inside, what heads give to the output of their layer is multiplied by a gate each.

    Equation, with the gates xi (Michel et al. 2019, eq. 2):

        out = concat over h of (xi_h scores_h v_h) W^O + b^O

    Args:
        gates: dictionary, attention layer -> gates `(1 or batch, num_heads)`.
    """
    token = _GATES.set(tuple(gates.items()))
    try:
        yield
    finally:
        _GATES.reset(token)


def gated(layer, context):
    """Returns the sums of values of all heads of a layer, times their gates.

    Args:
        layer: the attention layer.
        context: `(heads, batch, length, key_dim)`.
    """
    for owner, gates in _GATES.get() or ():
        if owner is layer:
            gates = ops.cast(ops.transpose(gates), context.dtype)
            return context * ops.reshape(gates, (*ops.shape(gates), 1, 1))
    return context
