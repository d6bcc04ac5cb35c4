"""Base of what is made of positions alone, for all layers at once."""

import keras
from keras import ops

from keras_tupe.layers._parts import Configured, at_least_float32, fresh, normal_unless


class AbstractPositionTensors(Configured, keras.layers.Layer):
    """Base of position tensors, made once per forward pass for all attention layers.

    A subclass gives them by `tensors(length)`; hidden states do not change them. The constructor's
    arguments are kept as attributes of their names: the configuration is made of them.

    Attributes:
        table_dtype: dtype of the tensors, at least float32.

    Args:
        initializer: Keras initializer of the weights; `None` for a normal of deviation 0.02.
            Defaults to `"zeros"`.
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

    def __init__(self, initializer="zeros", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.initializer = normal_unless(initializer)

    @property
    def table_dtype(self):
        """Dtype of tables and of what is made of them, at least float32."""
        return at_least_float32(self.compute_dtype)

    def add_table(self, name, shape, initializer=None):
        """Returns a new weight that no policy rounds.

        Args:
            name: its name.
            shape: its shape.
            initializer: of its values. Defaults to one of the kind of the layer's.
        """
        initializer = fresh(self.initializer) if initializer is None else initializer
        return self.add_weight(shape=shape, initializer=initializer, autocast=False, name=name)

    def tensors(self, length):
        """Returns a tensor, or a tree of tensors, of `table_dtype`.

        Args:
            length: number of tokens, an integer or a scalar tensor.
        """
        raise NotImplementedError(
            f"A subclass must define `tensors(length)`: add it. Received: {type(self).__name__}"
        )

    def call(self, hidden_states):
        found = self.tensors(ops.shape(hidden_states)[1])
        # Keras's waves on JAX are of its `floatx`
        return keras.tree.map_structure(lambda x: ops.cast(x, self.table_dtype), found)
