"""Tokens drawn from a language model, in the positions that it was asked about."""

import keras
from keras import ops

from keras_tupe.layers._parts import at_least_float32


@keras.saving.register_keras_serializable(package="keras_tupe")
class TokenReplacement(keras.layers.Layer):
    """Draws a token for each masked slot, and puts it into the text.

    Equation (Clark et al. 2020, section 2), with p = softmax(logits) of a slot and its noise u:

        token = the first w with p_0 + ... + p_w > u

    The noise comes with the data: the same rows give the same tokens on any number of devices, in
    any number of micro-batches, and after any resumption. Nothing is learned through what is drawn.

    Args:
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        token_ids: integers `(batch, length)`. The answer has this shape, in int32.
        mask_positions: integers `(batch, slots)`, in [0, length).
        sampling_noise: `(batch, slots)`, uniform in [0, 1), or negative where the token stays.
        logits: `(batch, slots, vocabulary_size)`.

    Example:
        >>> logits = np.log([[[0.2, 0.5, 0.3]]])
        >>> tokens, where, noise = np.array([[4, 4]]), np.array([[1]]), np.array([[0.6]])
        >>> replaced = TokenReplacement()(tokens, where, noise, logits)
        >>> keras.ops.convert_to_numpy(replaced).tolist()
        [[4, 1]]
    """

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)

    def call(self, token_ids, mask_positions, sampling_noise, logits):
        token_ids = ops.cast(token_ids, "int32")
        mask_positions = ops.cast(mask_positions, "int32")
        logits = ops.cast(ops.stop_gradient(logits), at_least_float32(logits.dtype))
        sums = ops.cumsum(ops.exp(logits - ops.max(logits, axis=-1, keepdims=True)), axis=-1)
        noise = ops.cast(sampling_noise, logits.dtype)
        counts = ops.sum(ops.cast(sums <= noise[..., None] * sums[..., -1:], "int32"), axis=-1)
        drawn = ops.minimum(counts, logits.shape[-1] - 1)  # rounding may count all
        kept = ops.take_along_axis(token_ids, mask_positions, axis=1)
        drawn = ops.where(noise < 0, kept, drawn)
        shape = ops.shape(mask_positions)
        rows = ops.broadcast_to(ops.arange(shape[0], dtype="int32")[:, None], shape)
        where = ops.stack([ops.reshape(rows, (-1,)), ops.reshape(mask_positions, (-1,))], axis=1)
        # differences, which add up: slots that are not in use share a position, and add 0
        changes = ops.reshape(drawn - kept, (-1,))
        return token_ids + ops.scatter(where, changes, ops.shape(token_ids))

    def compute_output_spec(self, token_ids, mask_positions, sampling_noise, logits):
        return keras.KerasTensor(token_ids.shape, "int32")
