"""The loss of a batch as a sum and what it is divided by, so that parts of a batch add up."""

import keras
from keras import ops

from keras_tupe._keras_private.training import loss_of_function
from keras_tupe.layers._parts import at_least_float32

MEANS = ("mean_with_sample_weight", "sum_over_batch_size", "mean")


class Objective:
    """Sums of a loss over the values of a part of a batch.

    Equation, over the values v of a part (tokens, or examples):

        loss_sum = sum_v weight_v * loss_v
        count    = sum_v weight_v      for the reduction "mean_with_sample_weight"
                   number of values    for "sum_over_batch_size"

    The loss of the batch is the sum of all parts' `loss_sum` over the sum of their `count`s.

    Args:
        loss: a `keras.losses.Loss`, its name, or a function (targets, outputs) -> losses.
        is_scored: whether the outputs hold the losses already, see `LossInChunks`. Defaults to
            `False`.

    Raises:
        ValueError: if the reduction is none of the above.
    """

    names = ()  # of outputs: there is one loss, see `SeveralObjectives`

    def __init__(self, loss, is_scored=False):
        loss = keras.losses.get(loss)
        reduction = getattr(loss, "reduction", "sum_over_batch_size")
        if loss is None or reduction not in MEANS:
            raise ValueError(
                "`loss` must be one Keras loss whose reduction is one of "
                f"{list(MEANS)}: the mean of a batch is what all of its parts add up to. "
                f"Received: loss={loss!r}, reduction={reduction!r}"
            )
        if not isinstance(loss, keras.losses.Loss):  # a function: Keras makes its ranks fit
            loss = loss_of_function(loss)
        self._values = loss.call
        if is_scored:
            self._values = lambda targets, outputs: outputs[..., 0]
        elif keras.backend.backend() == "tensorflow":
            from keras_tupe.trainer._cross_entropy import few_passes

            self._values = few_passes(loss)
        self._count_weights = reduction == "mean_with_sample_weight"

    def sums(self, targets, outputs, weights):
        """Returns `(loss_sum, count)` of a part, scalars in at least float32."""
        outputs = ops.cast(outputs, at_least_float32(outputs.dtype))
        values = self._values(targets, outputs)
        values = ops.cast(values, at_least_float32(values.dtype))
        if weights is None:
            return ops.sum(values), ops.sum(ops.ones_like(values))
        weights = ops.cast(weights, values.dtype)
        while len(weights.shape) < len(values.shape):
            weights = ops.expand_dims(weights, -1)
        while len(weights.shape) > len(values.shape) and weights.shape[-1] == 1:
            weights = ops.squeeze(weights, -1)
        weights = ops.broadcast_to(weights, ops.shape(values))
        return ops.sum(values * weights), ops.sum(self.counted(weights))

    def counted(self, weights):
        """Returns what the values of a part count in the mean, given the weight of each."""
        return weights if self._count_weights else ops.ones_like(weights)

    def in_whole(self, targets, weights, whole):
        """Returns the weights as they are: what one loss is divided by is added up like it."""
        return weights

    def each(self, targets, outputs, weights):
        """Returns `sums`, of one loss."""
        return self.sums(targets, outputs, weights)
