"""A model's outputs for batches of NumPy arrays, compiled once for all widths."""

import keras
import numpy as np


class Forward:
    """Calls a built model with one output for inference.

    Keras's `predict` would divide a batch over the devices of a strategy and show a bar for each
    call. Here one device does it: compiled for every width on JAX, once for all on TensorFlow.
    """

    def __init__(self, model):
        self._model = model
        self._function = None  # made when the inputs are known

    def __call__(self, inputs):
        """Returns the outputs of a dictionary of NumPy arrays, at least float32."""
        if self._function is None:
            compiled = _with_jax if keras.backend.backend() == "jax" else _with_tensorflow
            self._function = compiled(self._model, inputs)
        outputs = keras.ops.convert_to_numpy(self._function(inputs))
        return outputs.astype(np.promote_types(outputs.dtype, "float32"))


def _with_jax(model, inputs):
    import jax

    def outputs(trainable, rest, values):
        return model.stateless_call(trainable, rest, values, training=False)[0]

    function = jax.jit(outputs)
    variables = (model.trainable_variables, model.non_trainable_variables)

    def call(values):
        return function(*([one.value for one in group] for group in variables), values)

    return call


def _with_tensorflow(model, inputs):
    import tensorflow as tf

    spec = {name: tf.TensorSpec((None,) * ids.ndim, ids.dtype) for name, ids in inputs.items()}
    traced = tf.function(lambda values: model(values, training=False), autograph=False)
    function = traced.get_concrete_function(spec)
    return lambda values: function({name: tf.constant(ids) for name, ids in values.items()})
