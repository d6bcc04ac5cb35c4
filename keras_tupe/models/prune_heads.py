"""Encoders without some of their heads."""

import keras
import numpy as np

from keras_tupe.layers._checks import is_integer
from keras_tupe.models._changed_copy import backbone_of, copy_with
from keras_tupe.models._kept_heads import heads_of_any


def prune_heads(model, heads):
    """Returns a copy of a model without some of its attention heads.

    The weights of these heads are not there any more: their projections of queries, keys and
    values, their rows of the output projection, and what a position method has for each of them.
    Of position terms that all layers share, heads are removed that no layer has any more. The
    answers are those of the model with the gates of these heads at zero (Michel et al. 2019):

        out = concat over h of (xi_h scores_h v_h) W^O + b^O,   xi_h = 0 for the removed ones

    Heads keep their numbers: `kept_heads` of the new encoder says which are there, and a pruned
    model may be pruned again. Like any other it is trained, saved, loaded and exported.

    Args:
        model: a `TupeBackbone`, or a task with one (`TupeMaskedLM`, `TupeTextClassifier`). It
            stays as it is.
        heads: dictionary: number of a layer -> numbers of the heads to remove. Layers that share a
            block (`num_groups`) lose the same ones.

    Returns:
        A new model of the same class, not compiled as the old one was.

    Raises:
        TypeError: if `model` is no such model, or `heads` is no dictionary.
        ValueError: for layers or heads that are not there, a layer that would lose all its heads,
            or a position method that does not say what it is without some of them.

    Example:
        >>> model = keras_tupe.TupeBackbone(100, 2, 4, 16, 32)
        >>> prune_heads(model, {0: [1, 3], 1: [0]}).kept_heads
        [[0, 2], [1, 2, 3]]

    References:
        Michel, Levy, Neubig. Are Sixteen Heads Really Better than One? NeurIPS 2019.
        https://arxiv.org/abs/1905.10650
    """
    backbone = backbone_of(model)
    before = all_heads(backbone)
    removed = _checked(heads, before)
    after = [
        [head for head in kept if head not in removed.get(layer, ())]
        for layer, kept in enumerate(before)
    ]
    empty = [layer for layer, kept in enumerate(after) if not kept]
    if empty:
        raise ValueError(
            "A layer must keep at least one head; leave one of each out of `heads`. "
            f"Received: heads={heads!r}, which takes all heads of the layers {empty}"
        )
    pruned = copy_with(model, {"kept_heads": after})
    layer_of = {
        id(weight): layer
        for layer, block in enumerate(backbone_of(pruned).blocks)
        for weight in block.weights
    }
    union = heads_of_any(before), heads_of_any(after)
    for old, new in zip(model.weights, pruned.weights, strict=True):
        layer = layer_of.get(id(new))
        of_old, of_new = union if layer is None else (before[layer], after[layer])
        indices = [list(of_old).index(head) for head in of_new]
        new.assign(_cut(keras.ops.convert_to_numpy(old), tuple(new.shape), indices))
    return pruned


def all_heads(backbone):
    """Returns the heads of each layer by their numbers, a list of lists.

    Args:
        backbone: a `TupeBackbone`.

    Example:
        >>> all_heads(keras_tupe.TupeBackbone(100, 1, 2, 16, 32))
        [[0, 1]]
    """
    if backbone.kept_heads is not None:
        return [list(heads) for heads in backbone.kept_heads]
    return [list(range(backbone.num_heads)) for _ in range(backbone.num_layers)]


def lowest_heads(importance, share, num_groups=None):
    """Returns the heads of least importance in all layers together, for `prune_heads`.

    Heads are taken in the order of their importance, the lowest first, until the share of all that
    are there is reached. The most important one of each layer is passed over, since a layer keeps
    one head; so there may be fewer than asked for.

    Args:
        importance: real numbers `(num_layers, num_heads)`, NaN for a head that is not there, as
            `keras_tupe.analysis.head_importance` returns them.
        share: share of the heads, in [0, 1).
        num_groups: number of blocks that the layers share, if they do: their heads are taken
            together, by the first layer of each. Defaults to `None`.

    Returns:
        Dictionary: number of a layer -> ascending numbers of heads. Layers that lose none are left
        out.

    Raises:
        ValueError: if the share is outside of [0, 1), or `importance` has another shape.

    Example:
        >>> lowest_heads([[3.0, 1.0], [2.0, 4.0]], 0.5)
        {0: [1], 1: [0]}
    """
    check_share(share)
    values = np.asarray(importance, "float64")
    if values.ndim != 2 or np.isnan(values).all(axis=1).any():
        raise ValueError(
            "`importance` must have the shape (num_layers, num_heads), with a number for at least "
            f"one head of each layer. Received: importance of shape {values.shape}"
        )
    size = len(values) // (num_groups or len(values))
    values = values[::size]
    count = round(share * np.count_nonzero(~np.isnan(values)))
    keeps = set(enumerate(np.nanargmax(values, axis=1).tolist()))
    order = [divmod(int(index), values.shape[1]) for index in np.argsort(values, None, "stable")]
    chosen = [head for head in order if head not in keeps and not np.isnan(values[head])][:count]
    found = {}
    for block, head in sorted(chosen):
        for layer in range(size * block, size * (block + 1)):
            found.setdefault(layer, []).append(head)
    return found


def check_share(share):
    """Refuses a share of heads or weights to remove that is not in [0, 1).

    Raises:
        ValueError: if it is refused.
    """
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if not is_number or not 0 <= share < 1:
        raise ValueError(
            "`share` must be a number from 0 to below 1: something must be left. "
            f"Received: share={share!r}"
        )


def _checked(heads, before):
    if not isinstance(heads, dict):
        raise TypeError(
            "`heads` must be a dictionary, number of a layer -> numbers of the heads to remove, "
            f"such as {{0: [1, 3]}}. Received: heads={heads!r}"
        )
    for layer, numbers in heads.items():
        is_layer = is_integer(layer) and 0 <= layer < len(before)
        there = before[layer] if is_layer else []
        if not is_layer or not isinstance(numbers, list | tuple | set | np.ndarray):
            is_there = False
        else:
            is_there = all(is_integer(head) and head in there for head in numbers)
        if not is_there:
            raise ValueError(
                f"`heads` must have numbers of layers, from 0 to {len(before) - 1}, and for each a "
                "list of heads that it has"
                + (f", here {there}" if is_layer else "")
                + f". Received: {layer!r}: {numbers!r}"
            )
    return {layer: set(map(int, numbers)) for layer, numbers in heads.items()}


def _cut(value, shape, indices):
    """Returns a weight without the removed heads: those of the axis that became shorter."""
    for axis, (size, wanted) in enumerate(zip(value.shape, shape, strict=True)):
        if size != wanted:
            value = np.take(value, indices, axis=axis)
    return value
