"""Weights set to zero by their size, and kept there in training."""

import keras
import numpy as np

from keras_tupe.models._changed_copy import backbone_of, copy_with
from keras_tupe.models.prune_heads import check_share


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
    backbone_of(model)
    check_share(share)
    generator = None if seed is None else np.random.default_rng(seed)
    pruned = copy_with(model, {})
    for old, new in zip(model.weights, pruned.weights, strict=True):
        new.assign(old)
    for kernel in kernels(pruned):
        value = keras.ops.convert_to_numpy(kernel).copy()
        flat = value.reshape(-1)
        count = round(share * flat.size)
        sizes = np.abs(flat) if generator is None else generator.permutation(flat.size)
        flat[np.argsort(sizes, kind="stable")[:count]] = 0
        kernel.assign(value)
    return pruned


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
