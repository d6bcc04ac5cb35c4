"""Train and test steps on JAX."""

import jax
import keras

from keras_tupe._keras_private.training import JaxFit, put_jax_state
from keras_tupe.layers._recomputation import set_remat
from keras_tupe.trainer._checks import refuse_layer_losses, refuse_other_state
from keras_tupe.trainer._dropout_seeds import seeds_of
from keras_tupe.trainer._update import COUNTERS, updated
from keras_tupe.trainer.non_finite_error import NonFiniteError


class JaxSteps(JaxFit):
    """What `Trainer` does on JAX; see there.

    Keras's `fit` compiles the whole step, and under `keras.distribution.DataParallel` a batch is
    one array over all devices, so that sums over it are sums over all of them.
    """

    _keras_compiles = True

    def call_step(self, step, state, data):
        """One compiled step: Keras's state and a batch to logs and the next state."""
        (facts, logs), state = step(state, data)
        try:
            return self._checked({**facts, "stop": self._stop_request}, logs), state
        except NonFiniteError:
            put_jax_state(self, state)
            raise

    def train_step(self, state, data):
        """One step: Keras's state and a batch to logs and the next state."""
        trainable, non_trainable, optimizer_values, metrics_values = state
        current = {
            id(v): x for v, x in zip(self.non_trainable_variables, non_trainable, strict=True)
        }
        counters = {name: current[id(getattr(self, f"_{name}"))] for name in COUNTERS}
        seeds = [current[id(v)] for v in self._seed_states]
        set_remat(self.model, self.remat)
        inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(data)
        used = self._objective.in_whole(targets, weights, lambda counts: counts)  # of all devices

        def scaled_loss(trainable, data, part):
            inputs, targets, weights = data
            mapping = [
                *zip(self.trainable_variables, trainable, strict=True),
                *zip(self.non_trainable_variables, non_trainable, strict=True),
                *seeds_of(self._seed_states, seeds, counters["step"], part),
            ]
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
                inputs, given = self._with_labels(inputs, targets, training=True)
                outputs = self.model(inputs, training=True, **given)
                loss, count = self._objective.sums(targets, outputs, weights)
            refuse_other_state(self.model, self._seed_states, scope, mapping)
            refuse_layer_losses(self.model, scope)
            scaled = loss * counters["loss_scale"].astype(loss.dtype) if self._scales else loss
            return scaled, (loss, count, outputs if self.train_metrics else None)

        gradient = jax.grad(scaled_loss, has_aux=True)
        loss, count, gradients, outputs = self._over_parts(
            lambda data, part: gradient(trainable, data, part), (inputs, targets, used)
        )
        values = {"trainable": trainable, "optimizer": optimizer_values, **counters}
        new, facts = updated(self.optimizer, (loss, count), gradients, values, self._scales)
        for name in COUNTERS:
            variable = getattr(self, f"_{name}")
            current[id(variable)] = new[name].astype(variable.dtype)
        non_trainable = [current[id(v)] for v in self.non_trainable_variables]
        logs, metrics_values = self._measured(
            metrics_values, (loss, count), self.train_metrics, inputs, targets, outputs, weights
        )
        state = (new["trainable"], non_trainable, new["optimizer"], metrics_values)
        return (facts, logs), state

    def test_step(self, state, data):
        """Adds a batch to the metrics."""
        trainable, non_trainable, metrics_values = state
        inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(data)
        scored, given = self._with_labels(inputs, targets, training=False)
        outputs, non_trainable = self.stateless_call(
            trainable, non_trainable, scored, training=False, **given
        )
        sums = self._objective.each(targets, outputs, weights)
        logs, metrics_values = self._measured(
            metrics_values, sums, True, inputs, targets, outputs, weights
        )
        return logs, (trainable, non_trainable, metrics_values)

    def _over_parts(self, gradient, data):
        """Sums over the micro-batches: loss, count, gradients, and the outputs if asked for."""
        parts = self.micro_batches
        if parts == 1:
            gradients, (loss, count, outputs) = gradient(data, 0)
            return loss, count, gradients, outputs
        data = jax.tree.map(lambda x: _in_parts(x, parts), data)

        def body(sums, numbered):
            part, one = numbered
            gradients, (loss, count, outputs) = gradient(one, part)
            return jax.tree.map(lambda a, b: a + b, sums, (gradients, loss, count)), outputs

        first = jax.tree.map(lambda x: x[0], data)
        zeros = jax.eval_shape(lambda: gradient(first, 0))
        gradients, (loss, count, _) = jax.tree.map(
            lambda x: jax.numpy.zeros(x.shape, x.dtype), zeros
        )
        numbered = (jax.numpy.arange(parts), data)
        (gradients, loss, count), outputs = jax.lax.scan(body, (gradients, loss, count), numbered)
        outputs = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(-1, *x.shape[2:]), outputs)
        return loss, count, gradients, outputs

    def _measured(self, metrics_values, sums, computes, inputs, targets, outputs, weights):
        loss, count = sums
        mapping = list(zip(self.metrics_variables, metrics_values, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self._track(loss, count)
            if computes:
                self.compute_metrics(inputs, targets, outputs, weights)
            logs = self._logs(not computes)
        found = [scope.get_current_value(v) for v in self.metrics_variables]
        return logs, [x if new is None else new for (_, x), new in zip(mapping, found, strict=True)]

    def _make_stop_flag(self):
        self._stop_request = False

    def _set_stop_flag(self, value):
        self._stop_request = bool(value)

    def _look_ahead(self, args, kwargs):
        pass  # nothing depends on it here

    def _check_scope(self):
        pass  # nothing has a scope here

    def request_stop(self):
        """Asks for the end of `fit` after this step."""
        self._stop_request = True


def _in_parts(array, parts):
    rows = array.shape[0]
    if rows % parts:
        raise ValueError(
            f"A batch must have a number of rows that is a multiple of micro_batches={parts}. "
            f"Received: a batch of {rows} rows"
        )
    # every part has rows of every device
    return array.reshape(rows // parts, parts, *array.shape[1:]).swapaxes(0, 1)
