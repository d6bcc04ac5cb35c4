"""Loss and accuracy of a discriminator of replaced tokens."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_tupe")
class ReplacedTokenCrossentropy(keras.losses.Loss):
    """Binary cross entropy of whether each token was replaced.

    Equation (Clark et al. 2020, section 2), with logit l_i of token i, r_i = 1 if the token w'_i
    that the discriminator saw is another than that of the text, w_i, and 0 else:

        loss_i = log(1 + exp(l_i)) - r_i l_i

    A drawn token that happens to be the right one counts as not replaced.

    Args:
        reduction: as of every Keras loss. Defaults to `"mean_with_sample_weight"`.
        name: name of the loss.
        dtype: dtype of the values, `None` for Keras's own.

    Call arguments:
        y_true: the text as it was, token ids `(batch, length)`.
        y_pred: `(batch, length, 2)`: logits, and the token ids that were seen.

    Returns:
        Loss of each token `(batch, length)`, reduced.

    Example:
        >>> outputs = np.array([[[0.0, 7], [50.0, 8]]])  # the second token was seen as 8
        >>> round(float(ReplacedTokenCrossentropy()(np.array([[7, 9]]), outputs)), 4)
        0.3466

    References:
        Clark et al. ELECTRA. ICLR 2020. https://arxiv.org/abs/2003.10555
    """

    def __init__(
        self,
        reduction="mean_with_sample_weight",
        name="replaced_token_crossentropy",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true, y_pred):
        logits, replaced = logits_and_replaced(y_true, y_pred)
        return ops.softplus(logits) - ops.cast(replaced, logits.dtype) * logits


@keras.saving.register_keras_serializable(package="keras_tupe")
class ReplacedTokenAccuracy(keras.metrics.MeanMetricWrapper):
    """Share of the tokens of which a discriminator says right whether they were replaced.

    Args:
        name: name of the metric.
        dtype: dtype of the value, `None` for Keras's own.

    Call arguments:
        y_true, y_pred: as of `ReplacedTokenCrossentropy`.

    Example:
        >>> metric = ReplacedTokenAccuracy()
        >>> metric.update_state(np.array([[7, 9]]), np.array([[[-1.0, 7], [-1.0, 8]]]))
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name="replaced_token_accuracy", dtype=None):
        super().__init__(_is_right, name=name, dtype=dtype)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


def logits_and_replaced(y_true, y_pred):
    """Returns the logits and whether each token is another than that of the text.

    Args:
        y_true, y_pred: as of `ReplacedTokenCrossentropy`.
    """
    y_pred = ops.convert_to_tensor(y_pred)
    seen = ops.cast(ops.round(y_pred[..., 1]), "int32")
    text = ops.convert_to_tensor(y_true)
    return y_pred[..., 0], ops.not_equal(seen, ops.cast(text, "int32"))


def _is_right(y_true, y_pred):
    logits, replaced = logits_and_replaced(y_true, y_pred)
    return ops.cast(ops.equal(logits > 0, replaced), logits.dtype)
