"""A logit per token: whether it was replaced."""

import keras

from keras_tupe.layers._dense import Dense
from keras_tupe.layers._parts import Configured, at_least_float32, fresh, normal_unless
from keras_tupe.layers.gelu import gelu


@keras.saving.register_keras_serializable(package="keras_tupe")
class DiscriminatorHead(Configured, keras.layers.Layer):
    """Says of each token how likely it is that it was replaced.

    Equation (Clark et al. 2020, section 2, as released):

        logit_i = gelu(x_i W + b) . v + c

    Args:
        hidden_dim: width of the hidden states, and of W.
        kernel_initializer: Keras initializer of W and v. Defaults to a normal of deviation 0.02.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; logits are `(batch, length)`, float32 or more.

    Example:
        >>> tuple(DiscriminatorHead(8)(keras.ops.zeros((2, 5, 8))).shape)
        (2, 5)
    """

    def __init__(self, hidden_dim, kernel_initializer=None, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.hidden_dim = hidden_dim
        self.kernel_initializer = normal_unless(kernel_initializer)
        given = {"kernel_initializer": fresh(self.kernel_initializer), "activation": gelu}
        self.dense = Dense(hidden_dim, **given, dtype=self.dtype_policy, name="dense")
        given = {"kernel_initializer": fresh(self.kernel_initializer), "name": "prediction"}
        self.prediction = Dense(1, **given, dtype=at_least_float32(self.compute_dtype))

    def build(self, hidden_states_shape):
        self.dense.build(hidden_states_shape)
        self.prediction.build((*hidden_states_shape[:-1], self.hidden_dim))

    def call(self, hidden_states):
        return self.prediction(self.dense(hidden_states))[..., 0]

    def compute_output_spec(self, hidden_states):
        return keras.KerasTensor(hidden_states.shape[:-1], at_least_float32(self.compute_dtype))
