"""One layer of the encoder: attention and feed-forward network."""

import keras
from keras import ops

from keras_tupe.layers._at_positions import at_positions
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._dense import Dense
from keras_tupe.layers._normalization import LayerNormalization
from keras_tupe.layers._parts import fresh, unbuilt_layer
from keras_tupe.layers._recomputation import recomputed
from keras_tupe.layers.dropout import Dropout
from keras_tupe.layers.gelu import activation_of


@keras.saving.register_keras_serializable(package="keras_tupe")
class EncoderBlock(keras.layers.Layer):
    """One Transformer encoder layer around any attention of this package.

    Equation, post-LN (Vaswani et al. 2017; BERT and TUPE) and pre-LN:

        post-LN: y = LN(x + attention(x)),  out = LN(y + W_2 gelu(W_1 y))
        pre-LN:  y = x + attention(LN(x)),  out = y + W_2 gelu(W_1 LN(y))

    Dropout is applied to the output of each sublayer. GELU is the exact one, unless `activation`
    says otherwise.

    Args:
        attention: an `AbstractSelfAttention`.
        intermediate_dim: width of the feed-forward network.
        dropout: share of each sublayer's output dropped in training. Defaults to 0.
        normalize_first: pre-LN if `True`. Defaults to `False`, post-LN.
        layer_norm_epsilon: epsilon of both layer normalizations. Defaults to 1e-5.
        kernel_initializer: Keras initializer of W_1 and W_2.
        activation: `"gelu"`, the exact one, or `"gelu_approximate"`. Defaults to `"gelu"`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`.
        position_bias, shared_positions, padding_mask, training: as in the attention.
        output_positions: integers `(batch, count)` in `[0, length)`, where hidden states are wanted
            of the last block: nothing after the attention is computed elsewhere. Defaults to all.
        memory, memory_mask: for an attention with a memory: what hidden states the block was given
            for the tokens before, `(batch, memory_length, hidden_dim)`, which get no gradient, and
            which of them there are, `(batch, memory_length)`. Defaults to none.

    Returns:
        Hidden states of the same shape, or `(batch, count, hidden_dim)`, in the compute dtype.

    Masking: by `padding_mask`, in the attention.

    Example:
        >>> attention = keras_tupe.layers.PlainSelfAttention(num_heads=2, key_dim=4)
        >>> tuple(EncoderBlock(attention, 16)(keras.ops.zeros((3, 5, 8))).shape)
        (3, 5, 8)
    """

    def __init__(
        self,
        attention,
        intermediate_dim,
        dropout=0.0,
        normalize_first=False,
        layer_norm_epsilon=1e-5,
        kernel_initializer="glorot_uniform",
        activation="gelu",
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)  # position biases stay in float32
        check_positive_integers(intermediate_dim=intermediate_dim)
        self.attention = attention
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.normalize_first = normalize_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.activation = activation
        self.attention_norm = self._normalization("attention_layer_norm")
        self.feedforward_norm = self._normalization("feedforward_layer_norm")
        self.intermediate_dense = Dense(
            intermediate_dim,
            activation=activation_of(activation),
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="feedforward_intermediate",
        )
        self.attention_dropout = Dropout(dropout, name="attention_dropout", dtype=self.dtype_policy)
        self.feedforward_dropout = Dropout(
            dropout, name="feedforward_dropout", dtype=self.dtype_policy
        )

    def _normalization(self, name):
        return LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )

    def build(self, hidden_states_shape):
        self.output_dense = Dense(
            hidden_states_shape[-1],
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="feedforward_output",
        )
        for layer in (self.attention, self.attention_norm, self.feedforward_norm):
            layer.build(hidden_states_shape)
        self.intermediate_dense.build(hidden_states_shape)
        self.output_dense.build((*hidden_states_shape[:-1], self.intermediate_dim))

    def call(
        self,
        hidden_states,
        position_bias=None,
        shared_positions=None,
        padding_mask=None,
        output_positions=None,
        training=None,
        memory=None,
        memory_mask=None,
    ):
        def encoded(x, bias, shared_positions, padding_mask, output_positions, *memory):
            more = self._remembered(x, *memory) if self._remembers else {}
            part = self._attention_part(bias, shared_positions, padding_mask, training, **more)
            return self._around([part], x, output_positions, training)

        tensors = (hidden_states, position_bias, shared_positions, padding_mask, output_positions)
        memory = (memory, memory_mask) if self._remembers else ()
        return recomputed(self, encoded, (*tensors, *memory))

    @property
    def _remembers(self):
        return bool(getattr(self.attention, "memory_length", 0))

    def _remembered(self, hidden_states, memory, memory_mask):
        """Returns what the attention is told of the memory before a row."""
        x = ops.stop_gradient(ops.cast(hidden_states, self.compute_dtype))
        if memory is None:
            x = ops.pad(x, ((0, 0), (self.attention.memory_length, 0), (0, 0)))
        else:
            memory = ops.stop_gradient(ops.cast(memory, self.compute_dtype))
            x = ops.concatenate([memory, x], axis=1)
        x = self.attention_norm(x) if self.normalize_first else x
        return {"remembered": x, "memory_mask": memory_mask}

    def _attention_part(self, position_bias, shared_positions, padding_mask, training, **more):
        """Returns what `_around` takes, of the self-attention."""

        def attention(x):
            return self.attention(
                x,
                position_bias=position_bias,
                shared_positions=shared_positions,
                padding_mask=padding_mask,
                training=training,
                **more,
            )

        return attention, self.attention_norm, self.attention_dropout

    def _around(self, attentions, hidden_states, output_positions=None, training=None):
        """Returns what the block makes of hidden states, with attentions one after the other.

        Args:
            attentions: list of triples: function of hidden states, layer normalization, dropout.
            hidden_states, output_positions, training: as in the call arguments.
        """

        def sublayer(x, function, norm, dropout, positions=None):
            added = function(norm(x) if self.normalize_first else x)
            x = dropout.added(x, added, training=training)
            if positions is not None:
                x = at_positions(x, positions, training)
            return x if self.normalize_first else norm(x)

        x = ops.cast(hidden_states, self.compute_dtype)
        for part in attentions[:-1]:
            x = sublayer(x, *part)
        x = sublayer(x, *attentions[-1], positions=output_positions)
        feedforward = (self._fed_forward, self.feedforward_norm, self.feedforward_dropout)
        return sublayer(x, *feedforward)

    def _fed_forward(self, x):
        return self.output_dense(self.intermediate_dense(x))

    def prefill(self, hidden_states, position_bias=None, shared_positions=None):
        """Returns the answer of a call without dropout, and the cache of the attention.

        Args:
            hidden_states, position_bias, shared_positions: as in the call arguments.
        """
        return self._with_cache(
            self.attention.prefill,
            hidden_states,
            position_bias=position_bias,
            shared_positions=shared_positions,
        )

    def step(self, hidden_states, cache, index, position_bias=None, layer_positions=None):
        """Returns the hidden states of new tokens, and the cache with theirs.

        Args:
            hidden_states: those of the new tokens, `(batch, count, hidden_dim)`.
            cache, index, position_bias, layer_positions: as of the attention's `step`.
        """
        return self._with_cache(
            self.attention.step,
            hidden_states,
            cache=cache,
            index=index,
            position_bias=position_bias,
            layer_positions=layer_positions,
        )

    def _with_cache(self, attention, hidden_states, others=(), **given):
        kept = []

        def attended(x):
            x, cache = attention(x, **given)
            kept.append(cache)
            return x

        parts = [(attended, self.attention_norm, self.attention_dropout), *others]
        return self._around(parts, hidden_states), kept[0]

    def compute_output_spec(
        self, hidden_states, *args, output_positions=None, memory=None, **kwargs
    ):
        self.attention.compute_output_spec(hidden_states, *args, **kwargs)  # refuses misfits
        shape = hidden_states.shape
        if output_positions is not None:
            shape = (*output_positions.shape, shape[-1])
        return keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "attention": keras.saving.serialize_keras_object(self.attention),
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "normalize_first": self.normalize_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "activation": self.activation,
        }

    @classmethod
    def from_config(cls, config):
        attention = unbuilt_layer(config["attention"])
        return cls(**{**config, "attention": attention})
