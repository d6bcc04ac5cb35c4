"""Reversible residual layers: memory for activations that hardly grows with depth."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="examples")
class ReversibleStack(keras.layers.Layer):
    """Encoder layers whose inputs are computed again from their outputs.

    Equation (Gomez et al. 2017, eqs. 6 and 7; Kitaev et al. 2020, "Reformer", eqs. 8 and 9), with
    F(x) = attention(LN(x)), G(x) = W_2 gelu(W_1 LN(x)), and x_1 = x_2 = x in the first layer:

        y_1 = x_1 + F(x_2),   y_2 = x_2 + G(y_1)      the next layer's x_1 and x_2
        x_2 = y_2 - G(y_1),   x_1 = y_1 - F(x_2)      in the backward pass, last layer first

    Differences from the sources: no dropout, whose masks would be drawn anew, and no feed-forward
    network in chunks. The streams have the dtype of the weights, since each inversion rounds.

    Args:
        attentions: an `AbstractSelfAttention` for each layer.
        intermediate_dim: width of the feed-forward networks.
        **kwargs: of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`.
        position_bias, shared_positions, padding_mask: as in the attention.

    Returns:
        y_1 and y_2 of the last layer side by side, `(batch, length, 2 hidden_dim)`.

    Raises:
        ValueError: if an attention has dropout.
    """

    def __init__(self, attentions, intermediate_dim, **kwargs):
        super().__init__(autocast=False, **kwargs)
        if rates := [attention.dropout for attention in attentions if attention.dropout]:
            raise ValueError(
                "Layers that are computed again must have no dropout. Make each attention with "
                f"dropout=0. Received: dropout={rates}"
            )
        self.attentions, self.intermediate_dim = list(attentions), intermediate_dim

    def build(self, shape):
        def new(kind, *args):
            return kind(*args, dtype=self.dtype_policy)

        norm, dense = keras.layers.LayerNormalization, keras.layers.Dense
        self.norms = [new(norm) for _ in self.attentions]
        self.feedforwards = [
            keras.Sequential([new(norm), new(dense, self.intermediate_dim, "gelu"), last])
            for last in [new(dense, shape[-1]) for _ in self.attentions]
        ]
        for layer in (*self.attentions, *self.norms, *self.feedforwards):
            layer.build(shape)

    def call(self, hidden_states, position_bias=None, shared_positions=None, padding_mask=None):
        given = {"position_bias": position_bias, "shared_positions": shared_positions}
        given = {name: term for name, term in given.items() if term is not None}
        branches = []
        for attention, norm, feedforward in zip(
            self.attentions, self.norms, self.feedforwards, strict=True
        ):

            def attend(x, *terms, attention=attention, norm=norm):
                terms = keras.tree.pack_sequence_as(given, list(terms))
                return attention(norm(x), padding_mask=padding_mask, **terms)

            branches.append(of_tensors(attend, [attention, norm], keras.tree.flatten(given)))
            branches.append(of_tensors(feedforward, [feedforward]))
        return reversible(
            *zip(*branches, strict=True), ops.cast(hidden_states, self.variable_dtype)
        )


def of_tensors(function, layers, terms=()):
    """Returns a function of layers as one of (x, *tensors), which has their gradients; tensors."""
    variables = [variable for layer in layers for variable in layer.trainable_variables]

    def branch(x, *tensors):
        mapping = [*zip(variables, tensors[: len(variables)], strict=True)]
        with keras.StatelessScope(state_mapping=mapping):
            return ops.cast(function(x, *tensors[len(variables) :]), x.dtype)

    return branch, [*(ops.copy(variable.value) for variable in variables), *terms]


def forward(branches, tensors, x):
    """Returns both streams after all branches, F and G in turn: (a, b) -> (b, a + branch(b))."""
    a = b = x
    for branch, given in zip(branches, tensors, strict=True):
        a, b = b, a + branch(b, *given)
    return ops.concatenate([a, b], axis=-1)


def reversible(branches, tensors, x):
    """Does `forward`, and keeps nothing for the backward pass but what it returns."""

    @ops.custom_gradient
    def run(x, *flat):
        now = keras.tree.pack_sequence_as(tensors, list(flat))
        streams = forward(branches, now, x)

        def gradient(upstream):
            (a, b), (d_a, d_b), found = ops.split(streams, 2, -1), ops.split(upstream, 2, -1), []
            for branch, given in zip(branches[::-1], now[::-1], strict=True):
                value, (more, *of_given) = with_gradients(branch, d_b, a, *given)
                a, b, d_a, d_b, found = b - value, a, d_b, d_a + more, of_given + found
            return d_a + d_b, *found

        return streams, gradient

    return run(x, *keras.tree.flatten(tensors))


def with_gradients(function, upstream, *inputs):
    """Returns the output of a function, and the gradients of its inputs."""
    if keras.backend.backend() == "jax":
        import jax

        output, back = jax.vjp(function, *inputs)
        return output, back(upstream)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = function(*inputs)
    return output, tape.gradient(output, inputs, upstream, unconnected_gradients="zero")
