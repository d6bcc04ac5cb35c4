"""A model's outputs for batches of NumPy arrays, compiled once for all widths."""

import keras
import numpy as np


class Forward:
    """Calls a model for inference.

    Keras's `predict` would divide a batch over the devices of a strategy and show a bar for each
    call. Here one device does it: compiled for every width on JAX, for any width on TensorFlow.

    Args:
        model: a built model with one output.
    """

    def __init__(self, model):
        self._model = model
        if keras.backend.backend() == "jax":
            import jax

            def outputs(trainable, rest, inputs):
                return model.stateless_call(trainable, rest, inputs, training=False)[0]

            self._function = jax.jit(outputs)
            self._variables = (model.trainable_variables, model.non_trainable_variables)
        else:
            import tensorflow as tf

            self._function = tf.function(
                lambda inputs: model(inputs, training=False), reduce_retracing=True, autograph=False
            )
            self._variables = ()

    def __call__(self, inputs):
        """Returns the outputs, at least float32.

        Args:
            inputs: dictionary of NumPy arrays.
        """
        state = [[variable.value for variable in variables] for variables in self._variables]
        outputs = self._function(*state, inputs)
        outputs = keras.ops.convert_to_numpy(outputs)
        return outputs.astype(np.promote_types(outputs.dtype, "float32"))
