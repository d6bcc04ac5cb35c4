"""A method of a model, compiled for inference on every backend."""

import keras


def compiled_method(model, method):
    """Returns a function that does what a method of a model does, compiled.

    It computes with the weights that the model has when it is called.

    Args:
        model: a built model.
        method: a bound method of it, of tensors alone, that changes no variable.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(method, autograph=False, reduce_retracing=True)
    if keras.backend.backend() != "jax":
        return method
    import jax

    @jax.jit
    def computed(values, *inputs):
        with keras.StatelessScope(zip(model.variables, values, strict=True)):
            return method(*inputs)

    return lambda *inputs: computed([x.value for x in model.variables], *inputs)
