"""Losses of language models over all positions, without the logits of all of them at once."""

import keras
from keras import ops

from keras_tupe.layers._token_losses import token_losses

_USUAL = {"from_logits": True, "ignore_class": None, "axis": -1}
_ACCURACIES = ("auto", "acc", "accuracy", "sparse_categorical_accuracy")


def is_of_logits(loss):
    """Returns whether a loss is the cross-entropy of sparse labels and logits of all classes."""
    if type(loss) is not keras.losses.SparseCategoricalCrossentropy:
        return False
    config = loss.get_config()
    return all(config.get(name, value) == value for name, value in _USUAL.items())


def may_be_scored(model, loss, *metrics):
    """Returns whether scores of labels tell a loss and metrics all that they need."""
    return isinstance(model, LossInChunks) and is_of_logits(loss) and all(map(_is_known, metrics))


def _is_known(metrics):
    if metrics is None or isinstance(metrics, str):
        return metrics is None or metrics in _ACCURACIES
    if isinstance(metrics, list | tuple):
        return all(map(_is_known, metrics))
    return type(metrics) is keras.metrics.SparseCategoricalAccuracy


def as_two_classes(scores):
    """Returns labels and logits of two classes that an accuracy takes for the scores' own."""
    hits = scores[..., 1]
    return ops.zeros_like(hits, "int32"), ops.stack([hits, ops.full_like(hits, 0.5)], axis=-1)


class LossInChunks:
    """First parent of a language model whose logits are those of the tied token embedding.

    If its inputs have `labels` too, integers `(batch, length)`, a call answers with scores
    `(batch, length, 2)` in place of logits: of each label its cross-entropy and, with
    `accuracy=True`, whether it is the likeliest token. With the usual loss, and no metrics but
    accuracy, `fit` and `evaluate` and the trainer put the labels there, and never hold the logits
    of a batch, `(batch, length, vocabulary_size)`.
    """

    hidden_states_name = "sequence_output"  # among the backbone's outputs
    _is_scored = False

    def call(self, inputs, training=None, mask=None, accuracy=True):
        if "labels" not in inputs:
            return super().call(inputs, training=training, mask=mask)
        labels = inputs["labels"]
        inputs = {name: x for name, x in inputs.items() if name != "labels"}
        hidden_states = self.backbone(inputs, training=training)[self.hidden_states_name]
        if len(labels.shape) == len(hidden_states.shape):  # a last axis of size 1
            labels = ops.squeeze(labels, -1)
        table = ops.convert_to_tensor(self.backbone.token_embedding.embeddings)
        table = ops.cast(table, hidden_states.dtype)
        return ops.stack(token_losses(hidden_states, table, labels, accuracy=accuracy), axis=-1)

    def token_losses(self, inputs, labels, training=False):
        """Returns the cross-entropy of the token after each, in nats, `(batch, length)`.

        Args:
            inputs: dictionary, as the model takes it.
            labels: the tokens after each, integers `(batch, length)`.
            training: whether dropout is active. Defaults to `False`.
        """
        return self({**inputs, "labels": labels}, training=training, accuracy=False)[..., 0]

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        super().compile(optimizer, loss, weighted_metrics=weighted_metrics, **kwargs)
        self._is_scored = may_be_scored(self, self.loss, kwargs.get("metrics"), weighted_metrics)

    def train_step(self, *args):
        return super().train_step(*args[:-1], self._with_labels(args[-1]))

    def test_step(self, *args):
        return super().test_step(*args[:-1], self._with_labels(args[-1]))

    def _with_labels(self, data):
        x, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
        if self._is_scored and labels is not None:
            x = {**x, "labels": labels}
        return x, labels, weights

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if "labels" not in x:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        scored = ScoredLoss(reduction=self.loss.reduction, dtype=self.loss.dtype)
        loss = scored(y, y_pred, sample_weight)
        return sum((ops.sum(ops.cast(one, loss.dtype)) for one in self.losses), loss)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if "labels" in x:
            y, y_pred = as_two_classes(y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)


class ScoredLoss(keras.losses.Loss):
    """The loss that scores hold already, with the reduction of another loss."""

    def call(self, y_true, y_pred):
        return y_pred[..., 0]
