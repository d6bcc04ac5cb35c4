"""Parts of optimizers on TensorFlow that change weights in place."""

import functools

import keras

_Optimizer = keras.src.optimizers.base_optimizer.BaseOptimizer
_BackendOptimizer = keras.optimizers.Optimizer.__bases__[0]


class InPlaceOptimizer(_BackendOptimizer):
    """Part of a Keras optimizer on TensorFlow whose `apply_in_place` is that of one replica.

    Keras's own merges the replicas for every variable; the trainer reduces the gradients before
    they are clipped, and writes this replica's own copy of a variable, by its handle. The part
    takes the place of what Keras adds for `tf.distribute`, below any optimizer of its own.

    Public name: none; `keras.optimizers.Optimizer` would do if it knew of no strategies.
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

    def _write(self, op, variable, value):
        import tensorflow as tf

        handle, dtype = self.handle_of(variable)
        getattr(tf.raw_ops, op)(resource=handle, value=tf.cast(value, dtype))

    assign = functools.partialmethod(_write, "AssignVariableOp")
    assign_add = functools.partialmethod(_write, "AssignAddVariableOp")
    assign_sub = functools.partialmethod(_write, "AssignSubVariableOp")
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
        values = (*powers, rate, *betas, self.epsilon * tf.sqrt(second))
        names = ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon")
        return {name: tf.cast(x, dtype) for name, x in zip(names, values, strict=True)}
