"""What `fit` of a compiled model holds, and how it is made to run other steps."""

import keras


def loss_of_function(function):
    """Returns a function (targets, outputs) -> losses as a loss that makes their ranks fit.

    Public name: none; `keras.losses.LossFunctionWrapper` if it were exported.
    """
    return keras.src.losses.losses.LossFunctionWrapper(function)


def loss_tracker(model):
    """Returns the metric with the mean loss of a compiled model, which `fit` shows as "loss".

    Public name: `Model.metrics[0]`, once its order is promised.
    """
    return model._loss_tracker


def has_own_strategy(model):
    """Returns whether a model on TensorFlow was made in the scope of a strategy.

    Public name: none; `Model.distribute_strategy` would do if it were `None` without one.
    """
    return model._distribute_strategy is not None


def queued_dataset(iterator):
    """Returns the `PyDataset` that a running queue reads for `fit`, or `None`.

    Keras takes a first batch to see its shape, and does not put it back: out of a queue it would
    come last. The data set gives it again.

    Public name: none; not needed once Keras puts that batch back.
    """
    adapter = getattr(iterator, "data_adapter", None)
    return adapter.py_dataset if getattr(adapter, "enqueuer", None) is not None else None


def put_jax_state(model, state):
    """Assigns to the variables of a model in `fit` what its `train_step` on JAX returned.

    The compiled step took over the memory of the earlier ones, and `fit` assigns the new ones only
    after a step that returned.

    Public name: none; `Model.jax_state_sync` would do if it took a state.
    """
    names = ("trainable", "non_trainable", "optimizer", "metrics")
    model._jax_state = {f"{name}_variables": part for name, part in zip(names, state, strict=True)}
    model._jax_state_synced = False
    model.jax_state_sync()


class TensorFlowFit:
    """Part of a Keras model on TensorFlow: `fit` builds metrics on `_batch_to_build_on`.

    Keras does so under a strategy alone, and reads the batch from the running queue.

    Public name: none; `Model.build` would do if it built metrics.
    """

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        if self._compile_metrics is None or self._compile_metrics.built:
            return
        data_batch = self._batch_to_build_on(iterator, data_batch)
        with self.distribute_strategy.scope():
            self._symbolic_build(data_batch=data_batch)


class JaxFit:
    """Part of a Keras model on JAX: `fit` calls compiled train steps by `call_step`.

    The function from `make_train_function` may be several steps: what has to see the result of each
    stands in between. Metrics are built on the data set's own first batch, see `queued_dataset`.

    Public name: none; `Model.make_train_function` would do if it took what wraps a compiled step.
    """

    _makes_training = False

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self._makes_training = True
            super().make_train_function(force)
            self._makes_training = False
        return self.train_function

    def _make_function(self, step_function, concatenate_outputs=False):
        if not self._makes_training:
            return super()._make_function(step_function, concatenate_outputs)
        return super()._make_function(
            lambda state, data: self.call_step(step_function, state, data)
        )

    def _symbolic_build(self, iterator=None, data_batch=None):
        if (dataset := queued_dataset(iterator)) is not None:
            iterator, data_batch = None, dataset[0]
        super()._symbolic_build(iterator=iterator, data_batch=data_batch)
