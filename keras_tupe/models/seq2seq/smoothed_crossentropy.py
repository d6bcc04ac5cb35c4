"""Cross-entropy against labels that leave a little to every other token."""

import keras
from keras import ops

from keras_tupe.trunk.config import SHARE


@keras.saving.register_keras_serializable(package="keras_tupe")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy of logits with smoothed labels.

    Equation, with e the share, V the number of classes and y the label (Szegedy et al. 2016, Sec.
    7; Vaswani et al. 2017, Sec. 5.4):

        loss = -(1 - e) log p_y - e / V sum_w log p_w,  p = softmax(logits)

    Args:
        label_smoothing: the share e, in [0, 1).
        reduction: of Keras. Defaults to the mean over weights.
        name: of Keras.
        dtype: of Keras; losses are computed in it. Defaults to Keras's `floatx`.

    Example:
        >>> loss = SmoothedCrossentropy(0.1, reduction=None)
        >>> found = loss([[0]], [[[2.0, 0.0, 0.0]]])
        >>> round(float(found[0, 0]), 4)
        0.3729
    """

    takes_class_numbers = True  # as labels, which are checked before training then

    def __init__(
        self,
        label_smoothing,
        reduction="mean_with_sample_weight",
        name="smoothed_crossentropy",
        dtype=None,
    ):
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.label_smoothing = SHARE("label_smoothing", label_smoothing)

    def call(self, y_true, y_pred):
        logits = ops.convert_to_tensor(y_pred)
        labels = ops.cast(y_true, "int32")
        of_label = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        of_all = ops.logsumexp(logits, axis=-1) - ops.mean(logits, axis=-1)
        share = self.label_smoothing
        return (1 - share) * of_label + share * of_all

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
