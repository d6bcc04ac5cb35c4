"""Which heads the layers of an encoder have: all, or those that are left of them."""

import dataclasses

from keras_tupe import positions
from keras_tupe.layers._checks import is_integer


def check_kept_heads(kept_heads, num_layers, num_heads, num_groups=None):
    """Returns the heads of each layer as a list of lists, or `None` where all are there.

    Args:
        kept_heads: for each layer the numbers of its heads, or `None`.
        num_layers: number of layers.
        num_heads: heads of a layer before some were removed.
        num_groups: number of blocks that the layers share, or `None`.

    Raises:
        ValueError: if they are not ascending numbers of heads for each layer, a layer has none, or
            layers that share a block differ.
    """
    if kept_heads is None:
        return None
    is_list = isinstance(kept_heads, list | tuple) and len(kept_heads) == num_layers
    if not is_list or not all(_are_heads(heads, num_heads) for heads in kept_heads):
        raise ValueError(
            f"`kept_heads` must be a list of {num_layers} lists, one for each layer, of ascending "
            f"numbers of heads from 0 to {num_heads - 1}, at least one in each, since a layer "
            f"keeps one head. Received: kept_heads={kept_heads!r}"
        )
    kept_heads = [[int(head) for head in heads] for heads in kept_heads]
    size = num_layers // (num_groups or num_layers)
    for first in range(0, num_layers, size):
        if any(heads != kept_heads[first] for heads in kept_heads[first : first + size]):
            raise ValueError(
                "Layers that share a block must keep the same heads. Received: "
                f"kept_heads={kept_heads}, num_layers={num_layers}, num_groups={num_groups}"
            )
    return None if all(len(heads) == num_heads for heads in kept_heads) else kept_heads


def _are_heads(heads, num_heads):
    return (
        isinstance(heads, list | tuple)
        and len(heads) > 0
        and all(is_integer(head) and 0 <= head < num_heads for head in heads)
        and list(heads) == sorted(set(heads))
    )


def heads_of_any(kept_heads):
    """Returns the heads that any layer has, ascending: those of shared position terms.

    Args:
        kept_heads: what `check_kept_heads` returned, not `None`.

    Example:
        >>> heads_of_any([[0, 2], [2, 3]])
        (0, 2, 3)
    """
    return tuple(sorted({head for heads in kept_heads for head in heads}))


def shared_dims(dims, position, kept_heads):
    """Returns the `Dims` of what all layers share.

    Args:
        dims: a `Dims` of all heads.
        position: name of the position method, which must say that its heads can be removed.
        kept_heads: what `check_kept_heads` returned.

    Raises:
        ValueError: if the method does not say so.
    """
    if kept_heads is None:
        return dims
    positions.get(position).check_pruned(position)
    heads = heads_of_any(kept_heads)
    return dataclasses.replace(
        dims, num_heads=len(heads), heads=heads, num_original_heads=dims.num_heads
    )


def layer_dims(dims, layer, kept_heads):
    """Returns the `Dims` of the attention of a layer.

    Args:
        dims: what `shared_dims` returned.
        layer: number of the layer.
        kept_heads: what `check_kept_heads` returned.
    """
    dims = dataclasses.replace(dims, layer_index=layer)
    if kept_heads is None:
        return dims
    own, shared = tuple(kept_heads[layer]), dims.heads
    indices = None if own == shared else tuple(shared.index(head) for head in own)
    return dataclasses.replace(dims, num_heads=len(own), heads=own, shared_heads=indices)
