"""Several losses of one model as one sum, which parts of a batch add up to."""

import keras
from keras import ops

from keras_tupe.layers._parts import at_least_float32
from keras_tupe.trainer._objective import Objective

_SHARE = "share of the batch's rows"  # beside the weights of the losses


class SeveralObjectives:
    """Sums of several losses over the values of a part of a batch.

    Equation, over the losses k and the values v of a part (tokens, or examples):

        loss_sum = sum_k loss_weight_k sum_v weight_kv loss_kv / count_k
        count    = rows of the part / rows of the whole batch

    where count_k is that of the loss over the whole batch, of all replicas, workers and
    micro-batches, see `Objective`; 1 if it is 0. It is known from targets and weights alone, so it
    is added up before anything is computed.

    The values of a loss have the shape of its targets, as with sparse labels.

    Args:
        losses: dictionary: name of an output -> what `Objective` takes.
        loss_weights: dictionary: name -> number; 1 for those that it lacks. `None` for all 1.

    Attributes:
        names: of the outputs, in the order of `losses`.
        loss_weights: dictionary: name -> number, in the order of `losses`.

    Raises:
        ValueError: as `Objective`, or for weights of other names or that are no numbers.
    """

    def __init__(self, losses, loss_weights=None):
        given = dict(loss_weights or {})
        if set(given) - set(losses) or not all(
            isinstance(x, int | float) and not isinstance(x, bool) for x in given.values()
        ):
            raise ValueError(
                "`loss_weights` must be a dictionary from names of losses, here "
                f"{sorted(losses)}, to numbers. Received: loss_weights={loss_weights!r}"
            )
        self._parts = {name: Objective(loss) for name, loss in losses.items()}
        self.names = tuple(losses)
        self.loss_weights = {name: given.get(name, 1.0) for name in losses}

    def counts(self, targets, weights):
        """Returns what each loss of a part is divided by, and its rows: a vector.

        Args:
            targets: dictionary: name -> tensor.
            weights: dictionary: name -> tensor; or `None`, for 1 everywhere.
        """
        weights = self._weights(targets, weights)
        counted = [ops.sum(part.counted(weights[name])) for name, part in self._parts.items()]
        rows = ops.shape(next(iter(weights.values())))[0]
        return ops.stack([*counted, ops.cast(rows, counted[0].dtype)])

    def in_whole(self, targets, weights, whole):
        """Returns the weights with which the sums of the parts of a batch add up to its loss.

        Args:
            targets, weights: those of a part.
            whole: function that adds the `counts` of all parts up: vector -> vector.
        """
        counts = whole(self.counts(targets, weights))
        weights, found = self._weights(targets, weights), {}
        counts = ops.where(counts == 0, ops.ones_like(counts), counts)
        for number, (name, factor) in enumerate(self.loss_weights.items()):
            found[name] = weights[name] * (factor / counts[number])
        rows = next(iter(weights.values()))
        ones = ops.ones_like(ops.reshape(rows, (ops.shape(rows)[0], -1))[:, 0])
        return {**found, _SHARE: ones / counts[-1]}

    def sums(self, targets, outputs, weights):
        """Returns `(loss_sum, count)` of a part, scalars, with the weights of `in_whole`."""
        parts = [
            part.sums(targets[name], outputs[name], weights[name])[0]
            for name, part in self._parts.items()
        ]
        loss = sum(parts[1:], parts[0])
        return loss, ops.cast(ops.sum(weights[_SHARE]), loss.dtype)

    def each(self, targets, outputs, weights):
        """Returns the sum of each loss of a part and its count, two vectors, with its own weights.

        Args:
            targets, outputs: dictionaries: name -> tensor.
            weights: dictionary: name -> tensor; or `None`.
        """
        weights = self._weights(targets, weights)
        found = [
            part.sums(targets[name], outputs[name], weights[name])
            for name, part in self._parts.items()
        ]
        return tuple(ops.stack(values) for values in zip(*found, strict=True))

    def total(self, means):
        """Returns the loss of a batch from the mean of each loss.

        Args:
            means: their values, in order.
        """
        pairs = zip(self.loss_weights.values(), means, strict=True)
        return sum(factor * mean for factor, mean in pairs)

    def _weights(self, targets, weights):
        """Returns the weights of each loss: 1 where there are none."""
        self._check_names("targets", targets)
        if weights is None:
            weights = {}
        else:
            self._check_names("weights", weights)
        found = {}
        for name in self._parts:
            given, like = weights.get(name), ops.convert_to_tensor(targets[name])
            if given is None:
                given = ops.ones((1,) * len(like.shape), keras.config.floatx())
            given = ops.cast(given, at_least_float32(given.dtype))
            while len(given.shape) < len(like.shape):
                given = ops.expand_dims(given, -1)
            found[name] = ops.broadcast_to(given, ops.shape(like))
        return found

    def _check_names(self, what, given):
        if not isinstance(given, dict) or set(given) != set(self._parts):
            received = sorted(given) if isinstance(given, dict) else type(given).__name__
            raise ValueError(
                f"The {what} of a model with several losses must be a dictionary with the names "
                f"of its outputs, {sorted(self._parts)}. Received: {received}"
            )


def objective_of(loss, loss_weights, is_scored):
    """Returns the `Objective` of one loss, or the `SeveralObjectives` of a dictionary.

    Args:
        loss: what `Trainer.compile` was given.
        loss_weights: the same.
        is_scored: as in `Objective`.

    Raises:
        ValueError: as these, or if one loss has weights.
    """
    if isinstance(loss, dict):
        return SeveralObjectives(loss, loss_weights)
    if loss_weights is not None:
        raise ValueError(
            "`loss_weights` are for several losses, a dictionary by the names of the model's "
            f"outputs. Received: loss_weights={loss_weights!r}, loss={loss!r}"
        )
    return Objective(loss, is_scored)
