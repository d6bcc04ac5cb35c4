"""The mask of padded keys, which costs nothing where there is no padding."""

import keras
from keras import ops

from keras_tupe.layers._exporting import is_saved

MASKED_LOGIT = -1e30  # far below any logit, finite: a row of only such values has a softmax


def key_mask(is_real, dtype):
    """Returns what is added to the logits, `(1, batch, 1, length)`.

    Args:
        is_real: booleans `(1, batch, 1, length)`, which keys are tokens.
        dtype: that of the logits. Both numbers are cast first: Keras makes them of its `floatx`,
            and float16 ends at 65504.
    """
    return ops.where(is_real, ops.cast(0.0, dtype), ops.cast(MASKED_LOGIT, dtype))


def masked(logits, mask):
    """Returns logits plus mask.

    Added, which takes one pass where a choice takes three; far below any logit. TensorFlow leaves
    the pass out where a batch has no padding, unless an exported graph should stay simple.

    Args:
        logits: `(heads, batch, rows, length)`.
        mask: what `key_mask` returned, or `None`.
    """
    if mask is None:
        return logits
    if keras.backend.backend() != "tensorflow" or is_saved():
        return logits + mask
    return ops.cond(ops.all(ops.equal(mask, 0)), lambda: logits, lambda: logits + mask)
