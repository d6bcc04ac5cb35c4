"""Copies of models with fewer heads, or with weights at zero."""

import keras
import numpy as np

from keras_tupe.layers._checks import is_integer, is_number
from keras_tupe.trunk.changes import backbone_of, changed


def prune_heads(model, heads):
    """Returns a copy of a model without some of its attention heads.

    What is theirs is removed: projections, rows of the output projection, what a position method
    has for each of them; of position terms that layers share, the heads that no layer has. The
    answers are those of the model with the gates of these heads at zero (Michel et al. 2019):

        out = concat over h of (xi_h scores_h v_h) W^O + b^O,   xi_h = 0 for the removed ones

    Heads keep their numbers: `kept_heads` of the new encoder says which are there, and a pruned
    model may be pruned again. Like any other it is trained, saved, loaded and exported; it is not
    compiled as the old one was.

    Args:
        model: a `TupeBackbone`, or a task with one. It stays as it is.
        heads: dictionary: number of a layer -> numbers of the heads to remove. Layers that share a
            block (`num_groups`) lose the same ones.

    Raises:
        TypeError, ValueError: for another model, heads that are not there, a layer that would lose
            all of its own, or a method that does not say what it is without some.

    Example:
        >>> model = keras_tupe.TupeBackbone(100, 2, 4, 16, 32)
        >>> prune_heads(model, {0: [1, 3], 1: [0]}).kept_heads
        [[0, 2], [1, 2, 3]]
    """
    config = backbone_of(model).config
    before = config.heads
    if not isinstance(heads, dict):
        raise TypeError(
            "`heads` must be a dictionary, number of a layer -> numbers of the heads to remove, "
            f"such as {{0: [1, 3]}}. Received: heads={heads!r}"
        )
    for layer, numbers in heads.items():
        there = before[layer] if is_integer(layer) and 0 <= layer < len(before) else []
        is_list = isinstance(numbers, list | tuple | set | np.ndarray)
        if not there or not is_list or not all(is_integer(x) and x in there for x in numbers):
            raise ValueError(
                f"`heads` must have numbers of layers, from 0 to {len(before) - 1}, and for each a "
                f"list of heads that it has, here {there}. Received: {layer!r}: {numbers!r}"
            )
    removed = [heads.get(layer, ()) for layer in range(len(before))]
    after = [[head for head in kept if head not in removed[i]] for i, kept in enumerate(before)]
    if empty := [layer for layer, kept in enumerate(after) if not kept]:
        raise ValueError(
            "A layer must keep at least one head; leave one of each out of `heads`. "
            f"Received: heads={heads!r}, which takes all heads of the layers {empty}"
        )
    shared = config.heads_of_any, sorted({head for kept in after for head in kept})
    groups = {f"block_{config.group(layer)}": layer for layer in range(config.num_layers)}

    def rule(value, old, new):
        layer = groups.get(old.path.partition("/")[0])
        there, left = shared if layer is None else (before[layer], after[layer])
        for axis, (size, wanted) in enumerate(zip(value.shape, new.shape, strict=True)):
            if size != wanted:  # that of the heads
                value = np.take(value, [list(there).index(head) for head in left], axis=axis)
        return value

    return changed(model, rule, kept_heads=after)


def lowest_heads(importance, share, num_groups=None):
    """Returns the heads of least importance in all layers together, for `prune_heads`.

    The lowest are taken first, until the share of all that are there is reached. The most important
    one of each layer is passed over, since a layer keeps one: there may be fewer than asked for.

    Args:
        importance: real numbers `(num_layers, num_heads)`, NaN for a head that is not there, as
            `keras_tupe.analysis.head_importance` returns them.
        share: share of the heads, in [0, 1).
        num_groups: number of blocks that the layers share, if they do: their heads are taken
            together, by the first layer of each.

    Returns:
        Dictionary: number of a layer that loses heads -> their numbers, ascending.

    Raises:
        ValueError: if the share is outside of [0, 1), or `importance` has another shape.

    Example:
        >>> lowest_heads([[3.0, 1.0], [2.0, 4.0]], 0.5)
        {0: [1], 1: [0]}
    """
    _check_share(share)
    values = np.array(importance, "float64")
    if values.ndim != 2 or np.isnan(values).all(axis=1).any():
        raise ValueError(
            "`importance` must have the shape (num_layers, num_heads), with a number for at least "
            f"one head of each layer. Received: importance of shape {values.shape}"
        )
    size = len(values) // (num_groups or len(values))
    values = values[::size]
    count = round(share * np.count_nonzero(~np.isnan(values)))
    values[np.arange(len(values)), np.nanargmax(values, axis=1)] = np.nan  # which each layer keeps
    chosen = [i for i in np.argsort(values, None, "stable")[:count] if not np.isnan(values.flat[i])]
    found = {}
    for block, head in sorted(divmod(int(index), values.shape[1]) for index in chosen):
        for layer in range(size * block, size * (block + 1)):
            found.setdefault(layer, []).append(head)
    return found


def _check_share(share):
    if not is_number(share) or not 0 <= share < 1:
        raise ValueError(
            "`share` must be a number from 0 to below 1: something must be left. "
            f"Received: share={share!r}"
        )


def prune_weights(model, share, seed=None):
    """Returns a copy of a model with the smallest weights of its encoder set to zero.

    Equation (Han et al. 2015; of encoders Gordon et al. 2020), of each kernel (matrix or tensor of
    a dense layer) by itself, with n its number of weights:

        W_i = 0 for the round(share n) smallest |W_i|

    Embeddings, biases and layer normalizations stay. Shapes stay too, so that the model is not
    faster for it; a compressed file is smaller. `keep_zeros` keeps the zeros in training. The copy
    is not compiled as the old model was.

    Args:
        model: a `TupeBackbone`, or a task with one. It stays as it is.
        share: share of the weights of each kernel, in [0, 1).
        seed: an integer draws weights at random in place of the smallest, to compare with.

    Raises:
        TypeError, ValueError: for another model, or a share outside of [0, 1).

    Example:
        >>> model = prune_weights(keras_tupe.TupeBackbone(100, 1, 2, 16, 32), 0.25)
        >>> share_of_zeros(model)
        0.25
    """
    _check_share(share)
    generator = None if seed is None else np.random.default_rng(seed)
    chosen = {weight.path for weight in kernels(model)}

    def rule(value, old, new):
        if old.path not in chosen:
            return value
        flat = value.copy().reshape(-1)
        sizes = np.abs(flat) if generator is None else generator.permutation(flat.size)
        flat[np.argsort(sizes, kind="stable")[: round(share * flat.size)]] = 0
        return flat.reshape(value.shape)

    return changed(model, rule)


def kernels(model):
    """Returns the weights of an encoder, or of that of a task, that `prune_weights` prunes."""
    return [weight for weight in backbone_of(model).weights if weight.name == "kernel"]


def share_of_zeros(model):
    """Returns the share of zeros among the weights of a `model` that `prune_weights` prunes."""
    values = [keras.ops.convert_to_numpy(kernel) for kernel in kernels(model)]
    return sum(int(np.sum(v == 0)) for v in values) / sum(v.size for v in values)


def keep_zeros(model):
    """Keeps the zeros of pruned weights in all training of a model from now on, and returns it.

    Each kernel gets a `KeepZeros` of its zeros of now as its constraint, which Keras's optimizers
    apply after each update, weight decay included. The masks are not saved: they are the zeros of
    the model that training starts from, so call this whenever it is loaded.

    Args:
        model: a `TupeBackbone`, or a task with one; others raise a `TypeError`.

    Example:
        >>> model = keep_zeros(prune_weights(keras_tupe.TupeBackbone(100, 1, 2, 16, 32), 0.25))
        >>> kernels(model)[0].constraint.mask.mean()
        np.float64(0.75)
    """
    for kernel in kernels(model):
        kernel.constraint = KeepZeros(keras.ops.convert_to_numpy(kernel) != 0)
    return model


class KeepZeros(keras.constraints.Constraint):
    """Sets a weight to zero where a mask, booleans of its shape, is `False`: `W <- M W`."""

    def __init__(self, mask):
        self.mask = np.asarray(mask, bool)

    def __call__(self, w):
        w = keras.ops.convert_to_tensor(w)  # Keras hands the variable
        return keras.ops.where(self.mask, w, keras.ops.zeros_like(w))
