"""What `fit` and `evaluate` show of a trainer."""

import keras

from keras_tupe._keras_private.training import loss_tracker
from keras_tupe.tasks._language_model import as_two_classes
from keras_tupe.trainer.non_finite_error import NonFiniteError


class Shown:
    """The part of a trainer that says what is shown of each step; see `Trainer`."""

    def _with_labels(self, inputs, targets, training):
        """Inputs and keywords with which the model answers with losses of tokens, if it can."""
        if not self._is_scored:
            return inputs, {}
        accuracy = not training or self.train_metrics
        return {**inputs, "labels": targets}, {"accuracy": accuracy}

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if self._is_scored:
            y, y_pred = as_two_classes(y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _checked(self, facts, logs):
        """Takes what is known of the last step out of what `fit` shows; returns the rest.

        Raises:
            NonFiniteError: if there were more bad steps than are tolerated.
        """
        if not facts:  # of an evaluation
            return logs
        skipped = int(facts["skipped_steps"])
        seen, self._seen_skipped = self._seen_skipped or 0, skipped
        if skipped > max(seen, self.skip_bad_steps):
            raise NonFiniteError(int(facts["last_skipped_step"]), skipped)
        self.last_step = {name: float(facts[name]) for name in ("batch_loss", "gradient_norm")}
        self.last_step["skipped_steps"] = skipped
        self.stop_requested = self.stop_requested or bool(facts.get("stop", 0))
        self.stop_training = self.stop_training or self.stop_requested
        return logs

    def _logs(self, in_training):
        """What `fit` or `evaluate` shows: metrics that are not computed are left out."""
        if in_training and not self.train_metrics:
            return {"loss": loss_tracker(self).result()}
        logs = self.get_metrics_result()
        each = [tracker.name for tracker in self._loss_trackers] if in_training else ()
        return {name: value for name, value in logs.items() if name not in each}

    def get_metrics_result(self):
        logs = super().get_metrics_result()
        if self._loss_trackers:  # in evaluation each of them is known, else their sum
            total = self._objective.total([x.result() for x in self._loss_trackers])
            logs["loss"] = keras.ops.where(loss_tracker(self).count == 0, total, logs["loss"])
        return logs

    def _track(self, loss, count):
        """Adds a part of a batch to the mean loss, or each of the losses, unless not finite."""
        if len(loss.shape):
            for number, tracker in enumerate(self._loss_trackers):
                _track(tracker, loss[number], count[number])
        else:
            _track(loss_tracker(self), loss, count)


def _track(tracker, loss, count):
    is_good = keras.ops.isfinite(loss)
    counted = keras.ops.where(is_good, count, 0)
    mean = keras.ops.where(is_good, loss, 0) / keras.ops.maximum(count, 1e-6)
    tracker.update_state(mean, sample_weight=counted)
