"""From logits to the sum of values: softmax, dropout and product, with a gradient of its own.

The gradient needs the softmax and nothing else of the size of the logits: which scores were dropped
is found again by counter.
"""

import dataclasses

import keras
from keras import ops

from keras_tupe.layers._compiled import compiled
from keras_tupe.layers._exporting import is_saved
from keras_tupe.layers.attention.random_bits import can_draw, keep_mask


@dataclasses.dataclass(frozen=True)
class ScoreDropout:
    """Dropout of attention scores.

    Attributes:
        rate: share that is dropped, in (0, 1).
        seed: tensor of two integers; a Keras seed generator where bits are not drawn by counter.
    """

    rate: float
    seed: object

    @property
    def scale(self):
        """By what the scores that are kept are multiplied."""
        return 1 / (1 - self.rate)


def softmax(logits):
    """Returns the softmax over keys; Keras warns of a softmax over one element."""
    return ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)


def forward(probabilities, value, dropout, first_row):
    """Returns the sum of values of some rows, `(heads, batch, rows, key_dim)`.

    Equation:

        out_i = sum_j p_ij keep_ij v_j / (1 - rate)

    Args:
        probabilities: softmax of the logits of the rows, `(heads, batch, rows, length)`.
        value: `(heads, batch, length, key_dim)`.
        dropout: a `ScoreDropout`, or `None` for none.
        first_row: position of the first of the rows, an integer or a scalar tensor.
    """
    if dropout is None:
        return ops.matmul(ops.cast(probabilities, value.dtype), value)
    kept = _kept(probabilities, dropout.seed, ops.cast(first_row, "int32"), rate=dropout.rate)
    product = ops.matmul(ops.cast(kept, value.dtype), value)
    return product * ops.cast(dropout.scale, value.dtype)


def backward(probabilities, value, out, upstream, dropout, first_row):
    """Returns the gradients of logits and values.

    Equation, with g the gradient of `out`:

        d_logits_ij = p_ij (keep_ij g_i . v_j / (1 - rate) - g_i . out_i)
        d_v_j       = sum_i p_ij keep_ij g_i / (1 - rate)

    Args:
        probabilities, value, dropout, first_row: as above.
        out: what `forward` returned.
        upstream: its gradient.
    """
    dtype = probabilities.dtype
    scaled = upstream if dropout is None else upstream * ops.cast(dropout.scale, upstream.dtype)
    of_kept = ops.cast(ops.matmul(scaled, ops.swapaxes(value, -1, -2)), dtype)
    kept = probabilities
    if dropout is not None:
        place = (dropout.seed, ops.cast(first_row, "int32"))
        if keras.backend.standardize_dtype(value.dtype) == keras.backend.standardize_dtype(dtype):
            row_sums = ops.sum(upstream * out, axis=-1, keepdims=True)
        else:  # `out` is too coarse for what must add up to zero over a row
            of_kept = _kept(of_kept, *place, rate=dropout.rate)
            row_sums = ops.sum(probabilities * of_kept, axis=-1, keepdims=True)
        kept, of_logits = _kept_and_gradient(
            probabilities, of_kept, row_sums, *place, rate=dropout.rate
        )
    else:
        row_sums = ops.sum(probabilities * of_kept, axis=-1, keepdims=True)
        of_logits = probabilities * (of_kept - row_sums)
    of_value = ops.matmul(ops.swapaxes(ops.cast(kept, value.dtype), -1, -2), scaled)
    return of_logits, of_value


def weighted_values(logits, value, dropout):
    """Returns softmax, dropout and product for all rows at once; differentiable.

    Args:
        logits: `(heads, batch, length, length)`.
        value: `(heads, batch, length, key_dim)`.
        dropout: as above.
    """
    if is_saved() or not can_draw():
        return values_of_scores(softmax(logits), value, dropout)

    @ops.custom_gradient
    def apply(logits, value):
        logits, value = ops.stop_gradient(logits), ops.stop_gradient(value)
        probabilities = softmax(logits)
        out = forward(probabilities, value, dropout, 0)

        def gradient(*arguments, upstream=None):
            upstream = arguments[0] if upstream is None else upstream
            return backward(probabilities, value, out, upstream, dropout, 0)

        return out, gradient

    return apply(logits, value)


def values_of_scores(probabilities, value, dropout):
    """Returns dropout and product by plain operations, whose gradient the backend finds.

    Args:
        probabilities: scores `(heads, batch, length, length)`, whatever made them.
        value, dropout: as above.
    """
    if dropout is None:
        return ops.matmul(ops.cast(probabilities, value.dtype), value)
    if not can_draw():
        probabilities = keras.random.dropout(probabilities, dropout.rate, seed=dropout.seed)
        return ops.matmul(ops.cast(probabilities, value.dtype), value)
    keep = keep_mask(ops.shape(probabilities), dropout.rate, dropout.seed)
    kept = ops.where(keep, probabilities, ops.cast(0, probabilities.dtype))
    product = ops.matmul(ops.cast(kept, value.dtype), value)
    return product * ops.cast(dropout.scale, value.dtype)


@compiled
def _kept(probabilities, seed, first_row, rate):
    keep = keep_mask(ops.shape(probabilities), rate, seed, first_row)
    return ops.where(keep, probabilities, ops.cast(0, probabilities.dtype))


@compiled
def _kept_and_gradient(probabilities, of_kept, row_sums, seed, first_row, rate):
    keep = keep_mask(ops.shape(probabilities), rate, seed, first_row)
    zero = ops.cast(0, probabilities.dtype)
    of_logits = probabilities * (ops.where(keep, of_kept, zero) - row_sums)
    return ops.where(keep, probabilities, zero), of_logits
