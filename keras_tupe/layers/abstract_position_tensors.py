"""Base of what is made of positions alone, for all layers at once."""

import keras
from keras import ops

from keras_tupe.layers._checks import checked_length
from keras_tupe.layers._parts import Configured, at_least_float32, fresh, normal_unless


class AbstractPositionTensors(Configured, keras.layers.Layer):
    """Base of position tensors, made once per forward pass for all attention layers.

    A subclass gives them by `tensors(length)`, and keeps its constructor's arguments as attributes
    of their names: the configuration is made of them.

    Attributes:
        max_sequence_length: tokens of the longest text that is not refused, or `None` for any.

    Args:
        initializer: of the weights; `None` for a normal of deviation 0.02. Defaults to `"zeros"`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.

    Returns:
        What `tensors` returns, in `table_dtype`.

    Example:
        >>> class Places(AbstractPositionTensors):
        ...     def tensors(self, length):
        ...         return ops.cast(ops.arange(length), self.table_dtype)
        >>> tuple(Places()(ops.zeros((3, 5, 8))).shape)
        (5,)
    """

    max_sequence_length = None

    def __init__(self, initializer="zeros", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.initializer = normal_unless(initializer)

    @property
    def table_dtype(self):
        """Dtype of tables and of what is made of them, at least float32."""
        return at_least_float32(self.compute_dtype)

    def add_table(self, name, shape, initializer=None):
        """Returns a new weight of some `name` and `shape` that no policy rounds.

        By default its `initializer` is one of the kind of the layer's.
        """
        initializer = fresh(self.initializer) if initializer is None else initializer
        return self.add_weight(shape=shape, initializer=initializer, autocast=False, name=name)

    def tensors(self, length):
        """Returns a tensor, or a tree of tensors, for a `length`, an integer or a scalar tensor."""
        raise NotImplementedError(
            f"A subclass must define `tensors(length)`: add it. Received: {type(self).__name__}"
        )

    def call(self, hidden_states):
        found = self.tensors(checked_length(hidden_states, self.max_sequence_length, self.name))
        # Keras's waves on JAX are of its `floatx`
        return keras.tree.map_structure(lambda x: ops.cast(x, self.table_dtype), found)
