"""Copies of models with another trunk: longer tables, fewer heads, zeros, another memory."""

import keras
import numpy as np

from keras_tupe import positions
from keras_tupe.layers._checks import is_integer, is_number
from keras_tupe.trunk.trunk import Trunk


def backbone_of(model):
    """Returns the encoder of a `TupeBackbone` or a task with one; else raises `TypeError`."""
    backbone = getattr(model, "backbone", model)
    is_one = isinstance(getattr(backbone, "trunk", None), Trunk)
    if not is_one or (model is not backbone and "backbone" not in model.get_config()):
        raise TypeError(
            "`model` must be a `TupeBackbone` or a task with one, such as `TupeMaskedLM`; of a "
            f"model of several encoders take one. Received: model={model!r}"
        )
    return backbone


def changed(model, rule=lambda value, old, new: value, **fields):
    """Returns a new model of the same class, with other fields of its encoder's `TrunkConfig`.

    A preprocessor is handed over as it is; the model is not compiled as the old one was.

    Args:
        model: a `TupeBackbone`, or a task with one. It stays as it is.
        rule: (value of a weight, NumPy, the weight, the new weight) -> the value of the new one.
            Defaults to the same value.
        **fields: what differs.
    """
    backbone = backbone_of(model)
    made = type(backbone).from_config({**backbone.get_config(), **fields})
    if model is not backbone:
        config = {**model.get_config(), "backbone": made, "preprocessor": model.preprocessor}
        made = type(model)(**{name: x for name, x in config.items() if name != "trainable"})
    for old, new in zip(model.weights, made.weights, strict=True):
        new.assign(rule(keras.ops.convert_to_numpy(old), old, new))
    return made


# Another memory


def with_memory_length(model, memory_length, segment_length=None):
    """Returns a copy of a model with a memory of another length.

    All weights are copied. A longer memory than that of training is how Transformer-XL is evaluated
    (Dai et al. 2019, Sec. 4.3).

    Args:
        model: a `TupeBackbone`, or a task with one, such as `TupeCausalLM`. It stays as it is.
        memory_length: tokens of the memory before each segment, 0 for none.
        segment_length: tokens of a segment. Defaults to those of the model.

    Returns:
        A new model of the same class, not compiled as the old one was, with its preprocessor.

    Raises:
        TypeError: if `model` is no such model.
        ValueError: if a length is impossible, the position method has no memory or absolute
            positions in it, or its tables are too short.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(
        ...     100, 1, 2, 16, 32, "rope", attention_pattern="causal", memory_length=4
        ... )
        >>> longer = with_memory_length(backbone, 16)
        >>> longer.memory_length, longer.segment_length
        (16, 4)
    """
    config = backbone_of(model).config
    segment_length = config.segment_length if segment_length is None else segment_length
    if segment_length is None:
        raise ValueError(
            "The model reads whole rows: say by `segment_length` how many tokens a segment is to "
            "have. Received: a model with memory_length=0, segment_length=None"
        )
    before, after = (config.memory_length, config.segment_length), (memory_length, segment_length)
    if config.method.absolute_tables and before != after:
        raise ValueError(
            f"The position method {config.position!r} has a vector for each token of memory and "
            "segment: with another memory all would stand at other positions. Use a method of "
            "distances, or train with that memory. Received: "
            f"memory_length={memory_length}, segment_length={segment_length} for a model with "
            f"{before[0]} and {before[1]}"
        )
    return changed(model, memory_length=memory_length, segment_length=segment_length)


# Longer tables


def extend_positions(model, new_length, how="interpolate"):
    """Returns a copy of a model that takes longer sequences than its position tables allow.

    Rows of the tables are changed so, with p_0, the row of [CLS], staying as it is:

        interpolate    p_1 .. p_{n-1} are stretched linearly over 1 .. N-1: first on first,
                       last on last
        repeat         p_1 .. p_{n-1} start over behind their end
        drop_absolute  all rows, p_0 too, become zero vectors of any length: what is known of
                       absolute positions is dropped, to be learned anew; relative terms stay

    All other weights are copied. Fine-tune afterwards: no way is exact.

    Sources: repeating is how Longformer starts (Beltagy et al. 2020, Sec. 5); Huang et al. (2020,
    Table 5) drop the absolute vectors of BERT before they graft relative ones onto it.

    Args:
        model: a `TupeBackbone`, or a task with one (`TupeMaskedLM`, `TupeTextClassifier`). It
            stays as it is.
        new_length: longest sequence afterwards N, in tokens, more than `max_sequence_length`.
        how: `"interpolate"`, `"repeat"` or `"drop_absolute"`.

    Returns:
        A new model of the same class, not compiled as the old one was. A preprocessor is
        handed over as it is: make one with a longer `sequence_length` for longer rows.

    Raises:
        TypeError: if `model` is no such model.
        ValueError: if `new_length` is not longer, `how` is unknown, or the positional method has no
            table with a row per position.

    Example:
        >>> model = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, max_sequence_length=512)
        >>> extend_positions(model, 704).max_sequence_length
        704
    """
    config = backbone_of(model).config
    _check_extension(config, new_length, how)
    tables = config.method.absolute_tables

    def rule(value, old, new):
        return _HOW[how](value, new_length) if old.path.endswith(tables) else value

    return changed(model, rule, max_sequence_length=int(new_length))


def _check_extension(config, new_length, how):
    if how not in _HOW:
        raise ValueError(f"`how` must be one of {list(_HOW)}. Received: how={how!r}")
    if not config.method.absolute_tables:
        reason = "takes sequences of any length as it is"
        if config.has_length_limit:
            reason = "has tables that cannot be made longer; build it with what you need"
            if "k" in config.position_options:
                reason += ", or with a clipping distance `k`, which takes any length"
        extendable = sorted(n for n, method in positions.METHODS.items() if method.absolute_tables)
        raise ValueError(
            f"The position method {config.position!r} has no table with one row per position: "
            f"it {reason}. Methods with one: {extendable}. Received: a model with "
            f"position={config.position!r}, position_options={config.position_options!r}"
        )
    old_length = config.max_sequence_length
    if not is_integer(new_length) or new_length <= old_length:
        raise ValueError(
            "`new_length` must be an integer above the model's max_sequence_length="
            f"{old_length}. Shorter sequences need no change. Received: new_length={new_length!r}"
        )
    if old_length < 2 and how != "drop_absolute":
        raise ValueError(
            "A table with [CLS] alone has no rows to stretch or repeat. Use how='drop_absolute'. "
            f"Received: a model with max_sequence_length={old_length}"
        )


def _interpolate(table, length):
    places = np.linspace(1, len(table) - 1, length - 1)
    before = np.floor(places).astype(int)
    after = np.minimum(before + 1, len(table) - 1)
    share = (places - before).reshape(-1, *[1] * (table.ndim - 1))
    return np.concatenate([table[:1], (1 - share) * table[before] + share * table[after]])


def _repeat(table, length):
    return np.concatenate([table[:1], table[1 + np.arange(length - 1) % (len(table) - 1)]])


def _drop(table, length):
    return np.zeros((length, *table.shape[1:]), table.dtype)


_HOW = {"interpolate": _interpolate, "repeat": _repeat, "drop_absolute": _drop}


# Fewer heads


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
        TypeError: if `model` is no such model, or `heads` is not a dictionary.
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
    config = backbone_of(model).config
    before = config.heads
    removed = _checked_heads(heads, before)
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
    _check_share(share)
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


def _check_share(share):
    if not is_number(share) or not 0 <= share < 1:
        raise ValueError(
            "`share` must be a number from 0 to below 1: something must be left. "
            f"Received: share={share!r}"
        )


def _checked_heads(heads, before):
    """Returns the heads to remove, a dictionary of sets, of layers that have them."""
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
    return {layer: set(map(int, numbers)) for layer, numbers in heads.items()}


# Weights at zero


def prune_weights(model, share, seed=None):
    """Returns a copy of a model with the smallest weights of its encoder set to zero.

    Of each kernel (matrix or tensor of a dense layer) by itself, and n its number of weights:

        W_i = 0 for the round(share n) smallest |W_i|

    Embeddings, biases and layer normalizations stay. Shapes stay too, so that the model is not
    faster for it; a compressed file is smaller. `keep_zeros` keeps the zeros in training.

    Args:
        model: a `TupeBackbone`, or a task with one. It stays as it is.
        share: share of the weights of each kernel, in [0, 1).
        seed: an integer: then weights are drawn at random in place of the smallest, to compare
            with. Defaults to `None`.

    Returns:
        A new model of the same class, not compiled as the old one was.

    Raises:
        TypeError: if `model` is no such model.
        ValueError: if the share is outside of [0, 1).

    Example:
        >>> model = prune_weights(keras_tupe.TupeBackbone(100, 1, 2, 16, 32), 0.25)
        >>> share_of_zeros(model)
        0.25

    References:
        Han et al. Learning both Weights and Connections for Efficient Neural Networks. NeurIPS
        2015. https://arxiv.org/abs/1506.02626
        Gordon, Duh, Andrews. Compressing BERT. RepL4NLP 2020. https://arxiv.org/abs/2002.08307
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
    """Returns the weights of an encoder that `prune_weights` prunes: all kernels.

    Args:
        model: a `TupeBackbone`, or a task with one.
    """
    return [weight for weight in backbone_of(model).weights if weight.name == "kernel"]


def share_of_zeros(model):
    """Returns the share of zeros among the weights that `prune_weights` prunes, in [0, 1].

    Args:
        model: a `TupeBackbone`, or a task with one.
    """
    values = [keras.ops.convert_to_numpy(kernel) for kernel in kernels(model)]
    return sum(int(np.sum(v == 0)) for v in values) / sum(v.size for v in values)


def keep_zeros(model):
    """Keeps the zeros of pruned weights in all training of a model from now on.

    Each kernel gets a `KeepZeros` of its zeros of now as its constraint, which Keras's optimizers
    apply after each update, weight decay included. The masks are not saved: they are the zeros of
    the model that training starts from, so call this whenever it is loaded.

    Args:
        model: a `TupeBackbone`, or a task with one.

    Returns:
        The model.

    Raises:
        TypeError: if `model` is no such model.

    Example:
        >>> model = keep_zeros(prune_weights(keras_tupe.TupeBackbone(100, 1, 2, 16, 32), 0.25))
        >>> kernels(model)[0].constraint.mask.mean()
        np.float64(0.75)
    """
    for kernel in kernels(model):
        kernel.constraint = KeepZeros(keras.ops.convert_to_numpy(kernel) != 0)
    return model


class KeepZeros(keras.constraints.Constraint):
    """Sets a weight to zero where a mask says so.

    Equation, with the mask M: `W <- M W`.

    Args:
        mask: booleans of the weight's shape, `False` where the weight is zero.
    """

    def __init__(self, mask):
        self.mask = np.asarray(mask, bool)

    def __call__(self, w):
        w = keras.ops.convert_to_tensor(w)  # Keras hands the variable
        return keras.ops.where(self.mask, w, keras.ops.zeros_like(w))

    def __eq__(self, other):
        return isinstance(other, KeepZeros) and np.array_equal(self.mask, other.mask)

    __hash__ = None

    def get_config(self):
        return {"mask": self.mask.tolist()}
