"""All that is taken from Keras and KerasHub under private names, each with its reason.

No other file uses such a name: what a release renames breaks here. Each docstring ends with the
public name that would take its place. As of Keras 3.15 and KerasHub 0.32.
"""

import functools

import keras
import keras_hub

_Optimizer = keras.src.optimizers.base_optimizer.BaseOptimizer
_BackendOptimizer = keras.optimizers.Optimizer.__bases__[0]


def in_symbolic_scope():
    """Returns whether Keras computes shapes, or builds a model on data that is not real.

    Under a strategy it builds models on the mean of the replicas' ids, fractions, which checks of
    ids must let pass.

    Public name: none; `keras.SymbolicScope` makes such a scope, and a function beside it that asks
    for it would do.
    """
    return keras.src.backend.common.symbolic_scope.in_symbolic_scope()


def in_safe_mode():
    """Returns the `safe_mode` that a file is loaded with, or `None` while none is loaded.

    A layer that runs what a file names must refuse to in safe mode, as Keras's `Lambda` does.

    Public name: none; `keras.saving.load_model` takes it, and would do if it handed it to
    `from_config`.
    """
    return keras.src.saving.serialization_lib.in_safe_mode()


def all_layers(model, include_self=True):
    """Returns the layers of a model at all depths, outer ones before those in them.

    Public name: none; `Model.layers` would do if it had more than the outermost ones.
    """
    return model._flatten_layers(include_self=include_self)


def track_variable(owner, variable):
    """Makes a variable from elsewhere one of a layer's or an optimizer's own, saved with it.

    Public name: none; `add_weight` would do if it took a variable instead of making one.
    """
    owner._track_variable(variable)


def loss_of_function(function):
    """Returns a function (targets, outputs) -> losses as a `keras.losses.Loss`.

    It makes the ranks of targets and outputs fit, as `compile` does for a function.

    Public name: none; `keras.losses.LossFunctionWrapper` if it were exported, as
    `keras.metrics.MeanMetricWrapper` is.
    """
    return keras.src.losses.losses.LossFunctionWrapper(function)


def loss_tracker(model):
    """Returns the metric that holds the mean loss of a compiled model.

    Steps of one's own have to update what `fit` shows as "loss".

    Public name: `Model.metrics[0]`, once its order is promised.
    """
    return model._loss_tracker


def has_own_strategy(model):
    """Returns whether a model on TensorFlow was made in the scope of a strategy.

    Public name: none; `Model.distribute_strategy` would do if it were `None` without one, and not
    the current strategy.
    """
    return model._distribute_strategy is not None


def queued_dataset(iterator):
    """Returns the `PyDataset` that a running queue reads for `fit`, or `None`.

    Keras takes a first batch to see its shape. Out of a queue, where it does not go back to, the
    first batch would come last; the data set gives it again.

    Public name: none; not needed once Keras puts that batch back.
    """
    adapter = getattr(iterator, "data_adapter", None)
    return adapter.py_dataset if getattr(adapter, "enqueuer", None) is not None else None


def put_jax_state(model, state):
    """Assigns the arrays of a JAX step to the variables of a model in `fit`.

    The compiled step took over the memory of the earlier ones, and `fit` assigns the new ones only
    after a step that returned.

    Args:
        model: a Keras model.
        state: what a `train_step` returns: arrays of trainable, non-trainable, optimizer and
            metrics variables.

    Public name: none; `Model.jax_state_sync` would do if it took a state.
    """
    names = ("trainable", "non_trainable", "optimizer", "metrics")
    model._jax_state = {f"{name}_variables": part for name, part in zip(names, state, strict=True)}
    model._jax_state_synced = False
    model.jax_state_sync()


def preset_file(preset, name):
    """Returns the path of a file of a preset, fetched if it must be.

    Files are checked before KerasHub makes what they name, and `from_preset` will fetch the same.

    Raises:
        FileNotFoundError: if the preset has no such file.

    Public name: none; `keras_hub.utils.get_file` would be one.
    """
    return keras_hub.src.utils.preset_utils.get_file(preset, name)


def without_autocast():
    """Returns a scope in which variables are read as they are stored.

    What a layer computes in mixed precision reads each weight in the compute dtype; whoever reads
    all weights of a layer at once must not, since some of its layers compute in float32.

    Public name: none; `Variable.value` would do if it could be asked for without the cast.
    """
    return keras.src.backend.AutocastScope(None)


class InPlaceOptimizer(_BackendOptimizer):
    """Part of a Keras optimizer on TensorFlow whose `apply_in_place` is that of one replica.

    Keras's own merges the replicas for every variable; the trainer reduces the gradients itself,
    before they are clipped. Variables are written by their handles: this replica's own copy. The
    part takes the place of what Keras adds for `tf.distribute`, below any optimizer of its own.

    Public name: none; `keras.optimizers.Optimizer` would do if it were not that of strategies on
    TensorFlow.
    """

    @staticmethod
    def handle_of(variable):
        """Returns this replica's handle of a variable of Keras or TensorFlow, and its dtype."""
        variable = variable.value if isinstance(variable, keras.Variable) else variable
        return variable.handle, variable.dtype

    def apply_in_place(self, gradients, variables):
        """Does `apply` with gradients that are clipped by the global norm already."""
        with keras.StatelessScope() as scope:  # holds what is not assigned by `self.assign`
            self.apply(gradients, variables)
        for variable in (*self.variables, *variables):
            value = scope.get_current_value(variable)
            if value is not None:
                self.assign(variable, value)

    def assign(self, variable, value):
        import tensorflow as tf

        handle, dtype = self.handle_of(variable)
        tf.raw_ops.AssignVariableOp(resource=handle, value=tf.cast(value, dtype))

    def assign_add(self, variable, value):
        import tensorflow as tf

        handle, dtype = self.handle_of(variable)
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.cast(value, dtype))

    def assign_sub(self, variable, value):
        import tensorflow as tf

        handle, dtype = self.handle_of(variable)
        tf.raw_ops.AssignSubVariableOp(resource=handle, value=tf.cast(value, dtype))

    _backend_update_step = _Optimizer._backend_update_step

    def _clip_gradients(self, grads):
        return grads if self.global_clipnorm else super()._clip_gradients(grads)

    def _apply_weight_decay(self, variables):
        if self.weight_decay is None:
            return
        for variable in variables:
            if self._use_weight_decay(variable):
                factor = keras.ops.cast(self.weight_decay * self.learning_rate, variable.dtype)
                self.assign_sub(variable, variable * factor)


class InPlaceAdam:
    """Part of Adam and AdamW on TensorFlow: weight and moments change where they are in memory.

    TensorFlow's kernel has Keras's equation in one pass, without copies of the three.

    Public name: none; `keras.optimizers.Adam` would do if it called the kernel.
    """

    _scalars = None  # those of the step that is being made, by dtype

    @classmethod
    def fits(cls, optimizer):
        """Returns whether an optimizer's step is Adam's."""
        return type(optimizer).update_step is keras.optimizers.Adam.update_step

    def update_step(self, gradient, variable, learning_rate):
        import tensorflow as tf

        dtype = variable.dtype
        # in half precision the kernel's 1 - beta_2 is 0, where Keras's is not
        if self.amsgrad or dtype not in ("float32", "float64"):
            return super().update_step(gradient, variable, learning_rate)
        index = self._get_variable_index(variable)
        parts = {"var": variable, "m": self._momentums[index], "v": self._velocities[index]}
        return tf.raw_ops.ResourceApplyAdam(
            **{name: self.handle_of(x)[0] for name, x in parts.items()},
            **(self._scalars or self._make_scalars)(dtype),
            grad=tf.cast(gradient, dtype),
        )

    def apply_in_place(self, gradients, variables):
        """As `InPlaceOptimizer.apply_in_place`; what all weights share is made once."""
        self._scalars = functools.cache(self._make_scalars)
        try:
            super().apply_in_place(gradients, variables)
        finally:
            self._scalars = None

    def _make_scalars(self, dtype):
        import tensorflow as tf

        betas = [tf.constant(beta, dtype) for beta in (self.beta_1, self.beta_2)]
        steps = tf.cast(self.iterations + 1, "float64")
        # In float32 the kernel's 1 - 0.999 is 1.3e-5 too small, and so is the moment at first.
        powers = [tf.pow(tf.cast(beta, "float64"), steps) for beta in betas]
        exact = [tf.pow(tf.constant(beta, "float64"), steps) for beta in (self.beta_1, self.beta_2)]
        first, second = ((1 - a) / (1 - b) for a, b in zip(powers, exact, strict=True))
        rate = tf.cast(self.learning_rate, "float64") * tf.sqrt(second) / first
        return {
            "beta1_power": tf.cast(powers[0], dtype),
            "beta2_power": tf.cast(powers[1], dtype),
            "lr": tf.cast(rate, dtype),
            "beta1": betas[0],
            "beta2": betas[1],
            "epsilon": tf.cast(self.epsilon * tf.sqrt(second), dtype),
        }


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

    `train_step` is what is compiled, and the function from `make_train_function` may be several
    steps; whatever has to see the result of each step stands in between. Metrics are built on
    the data set's own first batch, see `queued_dataset`.

    Public name: none; `Model.make_train_function` would do if it took what wraps a compiled step.
    """

    _makes_training = False

    def make_train_function(self, force=False):
        """Makes, and returns, the function (state, iterator) -> (logs, state)."""
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
        dataset = queued_dataset(iterator)
        if dataset is not None:
            iterator, data_batch = None, dataset[0]
        super()._symbolic_build(iterator=iterator, data_batch=data_batch)
