"""Losses of language models over all positions, without the logits of all of them at once."""

import contextlib
import contextvars

import keras
from keras import ops

from keras_tupe.layers._token_losses import token_losses

_ASKED = contextvars.ContextVar("labels that scores are asked for", default=None)
_USUAL = {"from_logits": True, "ignore_class": None, "axis": -1}
_ACCURACIES = ("auto", "acc", "accuracy", "sparse_categorical_accuracy")


@contextlib.contextmanager
def scores_of(model, labels, accuracy):
    """Inside, the model answers with scores of labels in place of logits; see `LossInChunks`.

    Args:
        model: the model.
        labels: integers `(batch, length)`.
        accuracy: whether hits are wanted too.
    """
    token = _ASKED.set((model, labels, accuracy))
    try:
        yield
    finally:
        _ASKED.reset(token)


def is_of_logits(loss):
    """Returns whether a loss is the cross-entropy of sparse labels and logits of all classes."""
    if type(loss) is not keras.losses.SparseCategoricalCrossentropy:
        return False
    config = loss.get_config()
    return all(config.get(name, value) == value for name, value in _USUAL.items())


def may_be_scored(model, loss, *metrics):
    """Returns whether scores tell a loss and metrics all that they need of a model's outputs.

    Args:
        model: the model, whose tokens have scores if it is a `LossInChunks`.
        loss: a `keras.losses.Loss`.
        *metrics: what `compile` takes as metrics and weighted metrics.
    """
    return isinstance(model, LossInChunks) and is_of_logits(loss) and all(map(_is_known, metrics))


def _is_known(metrics):
    if metrics is None or isinstance(metrics, str):
        return metrics is None or metrics in _ACCURACIES
    if isinstance(metrics, list | tuple):
        return all(map(_is_known, metrics))
    return type(metrics) is keras.metrics.SparseCategoricalAccuracy


class ScoredLoss(keras.losses.Loss):
    """The loss that scores hold already, with the reduction of another loss."""

    def call(self, y_true, y_pred):
        return y_pred[..., 0]


def as_two_classes(scores):
    """Returns labels and logits of two classes that an accuracy takes for the scores' own.

    Args:
        scores: `(batch, length, 2)`.
    """
    hits = scores[..., 1]
    return ops.zeros_like(hits, "int32"), ops.stack([hits, ops.full_like(hits, 0.5)], axis=-1)


class LossInChunks:
    """First parent of a language model whose logits are those of the tied token embedding.

    With the usual loss, and no metrics but accuracy, `fit` and `evaluate` and the trainer never
    hold the logits of a batch, `(batch, length, vocabulary_size)`: within `scores_of` the model
    answers with `(batch, length, 2)`, of each label its cross-entropy and whether it is the
    likeliest token, see `token_losses`. With other losses and metrics all is as in Keras.
    """

    hidden_states_name = "sequence_output"  # among the backbone's outputs
    _is_scored = False

    def call(self, inputs, training=None, mask=None):
        model, labels, accuracy = _ASKED.get() or (None, None, None)
        if model is not self:
            return super().call(inputs, training=training, mask=mask)
        hidden_states = self.backbone(inputs, training=training)[self.hidden_states_name]
        if len(labels.shape) == len(hidden_states.shape):  # a last axis of size 1
            labels = ops.squeeze(labels, -1)
        embeddings = ops.convert_to_tensor(self.backbone.token_embedding.embeddings)
        embeddings = ops.cast(embeddings, hidden_states.dtype)
        return ops.stack(
            token_losses(hidden_states, embeddings, labels, accuracy=accuracy), axis=-1
        )

    def token_losses(self, inputs, labels, training=False):
        """Returns the cross-entropy of the token after each, in nats, `(batch, length)`.

        Args:
            inputs: dictionary, as the model takes it.
            labels: the tokens after each, integers `(batch, length)`.
            training: whether dropout is active. Defaults to `False`.
        """
        with scores_of(self, labels, accuracy=False):
            return self(inputs, training=training)[..., 0]

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        super().compile(optimizer, loss, weighted_metrics=weighted_metrics, **kwargs)
        metrics = kwargs.get("metrics"), weighted_metrics
        self._is_scored = may_be_scored(self, self.loss, *metrics)

    def train_step(self, *args):
        with self._scores(args[-1]):
            return super().train_step(*args)

    def test_step(self, *args):
        with self._scores(args[-1]):
            return super().test_step(*args)

    def _scores(self, data):
        _, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        if not self._is_scored or labels is None:
            return contextlib.nullcontext()
        return scores_of(self, labels, accuracy=True)

    def _has_scores(self):
        return (_ASKED.get() or (None,))[0] is self

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if not self._has_scores():
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        loss = ScoredLoss(reduction=self.loss.reduction, dtype=self.loss.dtype)(
            y, y_pred, sample_weight
        )
        return sum((ops.sum(ops.cast(one, loss.dtype)) for one in self.losses), loss)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if self._has_scores():
            y, y_pred = as_two_classes(y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)
