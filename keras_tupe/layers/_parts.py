"""Parts that layers share: precision, initializers, specs, inner layers, rows of tables, masks."""

import keras
from keras import ops


def at_least_float32(dtype):
    """Returns `dtype` if it is wider than float32, else `"float32"`.

    Logits, position biases, masks and softmax are computed in this type under every
    precision policy, because float16 overflows at 65504 and bfloat16 keeps 8 bits.

    Example:
        >>> at_least_float32("bfloat16"), at_least_float32("float64")
        ('float32', 'float64')
    """
    return "float64" if keras.backend.standardize_dtype(dtype) == "float64" else "float32"


def fresh(initializer):
    """Returns a new initializer of the same kind, with a seed of its own.

    A Keras 3 initializer draws the same numbers on every call for the same shape, so
    one instance shared by query and key would make the two projections equal.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return keras.initializers.get(initializer)
    return initializer.__class__.from_config(initializer.get_config())


def unbuilt_layer(config):
    """Returns the layer of a serialized configuration, not yet built.

    Keras records in it how the layer was built and would build it at once; the outer
    layer builds it too, and a second time is an error.
    """
    config = {key: value for key, value in config.items() if key != "build_config"}
    return keras.saving.deserialize_keras_object(config)


def bias_spec(layer, hidden_states, num_heads=None):
    """Returns the `KerasTensor` of a bias `(1, num_heads, length, length)`.

    Args:
        layer: the layer that makes it, with `num_heads`.
        hidden_states: `(batch, length, hidden_dim)`, symbolic.
        num_heads: number of heads, `None` for the layer's.
    """
    length = hidden_states.shape[1]
    shape = (1, num_heads or layer.num_heads, length, length)
    return keras.KerasTensor(shape, at_least_float32(layer.compute_dtype))


def take_rows(table, indices):
    """Returns `table[indices]` with a dense gradient for `table`.

    On TensorFlow the gradient of a gather is a sparse `IndexedSlices`, which XLA under
    a distribution strategy and gradient clipping handle badly. The gradient of a reshape is
    always dense, so the table passes through one first; on other backends it costs nothing.

    Args:
        table: tensor or variable of shape `(rows, width)`.
        indices: integer tensor of any shape, values in `[0, rows)`.

    Returns:
        Tensor of shape `indices.shape + (width,)`.
    """
    table = ops.convert_to_tensor(table)
    return ops.take(ops.reshape(table, (-1, table.shape[1])), indices, axis=0)


def beyond_if_negative(indices, size):
    """Returns indices with `size`, one beyond the last, instead of negative ones.

    Keras and ONNX count negative indices from the end, so that a mistake would get an answer. One
    beyond the end is an error wherever indices are looked at.

    Args:
        indices: integer tensor.
        size: number of rows, an integer or a scalar tensor.
    """
    if keras.backend.standardize_dtype(indices.dtype) != "int64":
        indices = ops.cast(indices, "int32")  # a narrow type has no room for `size`
    return ops.where(indices < 0, ops.cast(size, indices.dtype), indices)


def starts(*indices):
    """Returns the indices at which a slice starts, of one dtype, which JAX asks for.

    Args:
        *indices: integers and int32 scalar tensors.
    """
    if keras.backend.backend() != "jax":
        return indices
    return tuple(ops.cast(index, "int32") for index in indices)
