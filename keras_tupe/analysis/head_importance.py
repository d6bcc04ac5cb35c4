"""How much a loss depends on each head."""

import keras
import numpy as np
from keras import ops


def head_importance(backbone, losses, batches, normalize=False):
    """Returns how much a loss depends on each head: the mean size of its gate's gradient.

    Equation (Michel et al. 2019, Sec. 2.2), with a gate xi_h = 1 on what each head gives to the
    output of its layer, and the loss L of each example x:

        I_h = mean over x of |d L(x) / d xi_h|

    and normalized, as there, by the layer: I_h / sqrt(sum over the heads of a layer of I_h^2).

    Args:
        backbone: the `TupeBackbone` whose heads are asked about.
        losses: function of a batch -> the losses of its examples, tensor `(examples,)`; it calls
            a model with this backbone, with `training=False`.
        batches: iterable of batches: NumPy arrays or dictionaries of them, with examples first.
        normalize: whether to divide by the norm of the layer. Defaults to `False`.

    Returns:
        float64 `(num_layers, num_heads)`, by the numbers that heads had before any was removed,
        NaN where there is none any more. Layers that share a block have equal rows.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32)
        >>> ids = np.array([[2, 7, 9, 3], [2, 8, 5, 3]])
        >>> batch = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        >>> def losses(batch):
        ...     return keras.ops.sum(backbone(batch)["pooled_output"], axis=-1)
        >>> head_importance(backbone, losses, [batch]).shape
        (1, 2)

    References:
        Michel, Levy, Neubig. Are Sixteen Heads Really Better than One? NeurIPS 2019.
        https://arxiv.org/abs/1905.10650
    """
    layers = [block.attention for block in backbone.blocks]
    owners = list(dict.fromkeys(layers))  # layers of a group have the same
    sums, count = [0.0] * len(owners), 0
    for batch in batches:
        examples = len(keras.tree.flatten(batch)[0])
        if not examples:
            continue

        def total(gates, batch=batch, examples=examples):
            for owner, of_owner in zip(owners, gates, strict=True):
                owner.head_gates = of_owner
            found = losses(batch)
            if tuple(found.shape) != (examples,):
                raise ValueError(
                    "`losses` must return a number for each example of a batch, here a tensor of "
                    f"shape ({examples},). Received: a tensor of shape {tuple(found.shape)}"
                )
            return ops.sum(found)

        gates = [ops.ones((owner.num_heads, examples), owner.logits_dtype) for owner in owners]
        try:
            gradients = _gradients(total, gates)
        finally:
            for owner in owners:
                owner.head_gates = None
        for number, gradient in enumerate(gradients):
            sizes = np.abs(ops.convert_to_numpy(gradient).astype("float64"))
            sums[number] = sums[number] + sizes.sum(axis=1)
        count += examples
    if not count:
        raise ValueError("`batches` must have at least one example. Received: none")
    means = dict(zip(owners, (total / count for total in sums), strict=True))
    importance = np.full((backbone.num_layers, backbone.num_heads), np.nan)
    for layer, heads in enumerate(backbone.config.heads):
        importance[layer, heads] = means[layers[layer]]
    if normalize:
        norms = np.sqrt(np.nansum(importance**2, axis=1, keepdims=True))
        importance = importance / np.where(norms > 0, norms, 1)
    return importance


def _gradients(function, tensors):
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(function)(tensors)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(tensors)
        total = function(tensors)
    return tape.gradient(total, tensors)
