"""One layer of a decoder beside an encoder: two attentions and a feed-forward network."""

import keras

from keras_tupe.layers._normalization import LayerNormalization
from keras_tupe.layers._parts import unbuilt_layer
from keras_tupe.layers._recomputation import recomputed
from keras_tupe.layers.dropout import Dropout
from keras_tupe.layers.encoder_block import EncoderBlock


@keras.saving.register_keras_serializable(package="keras_tupe")
class DecoderBlock(EncoderBlock):
    """One Transformer decoder layer: an `EncoderBlock` with cross-attention in its middle.

    Equation, post-LN (Vaswani et al. 2017, Sec. 3.1; BART) and pre-LN, with m the states of the
    encoder:

        post-LN: y = LN(x + attention(x)),  z = LN(y + cross(y, m)),  out = LN(z + W_2 gelu(W_1 z))
        pre-LN:  y = x + attention(LN(x)),  z = y + cross(LN(y), m),  out = z + W_2 gelu(W_1 LN(z))

    Args:
        attention: an `AbstractSelfAttention`, whose attention pattern should be causal.
        cross_attention: a `CrossAttention`.
        intermediate_dim: width of the feed-forward network.
        **kwargs: as of `EncoderBlock`.

    Call arguments:
        hidden_states, position_bias, shared_positions, padding_mask, output_positions, training: as
            of `EncoderBlock`.
        encoder_states: `(batch, source length, hidden_dim)`.
        encoder_padding_mask: optional integers or booleans `(batch, source length)`, 1 = token.

    Returns:
        Hidden states, as `EncoderBlock`.

    Raises:
        ValueError: for sizes as `EncoderBlock`, and without `encoder_states`.

    Masking: by `padding_mask` in the attention, by `encoder_padding_mask` in the cross-attention.

    Example:
        >>> attention = keras_tupe.layers.PlainSelfAttention(2, 4, attention_pattern="causal")
        >>> cross_attention = keras_tupe.layers.CrossAttention(num_heads=2, key_dim=4)
        >>> block = DecoderBlock(attention, cross_attention, 16)
        >>> states = keras.ops.zeros((3, 7, 8))
        >>> tuple(block(keras.ops.zeros((3, 5, 8)), encoder_states=states).shape)
        (3, 5, 8)
    """

    def __init__(self, attention, cross_attention, intermediate_dim, **kwargs):
        super().__init__(attention, intermediate_dim, **kwargs)
        self.cross_attention = cross_attention
        self.cross_attention_norm = LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="cross_attention_layer_norm",
        )
        self.cross_attention_dropout = Dropout(
            self.dropout, name="cross_attention_dropout", dtype=self.dtype_policy
        )

    def build(self, hidden_states_shape, *args):
        super().build(hidden_states_shape)
        self.cross_attention.build(hidden_states_shape)
        self.cross_attention_norm.build(hidden_states_shape)

    def call(
        self,
        hidden_states,
        position_bias=None,
        shared_positions=None,
        padding_mask=None,
        output_positions=None,
        training=None,
        encoder_states=None,
        encoder_padding_mask=None,
    ):
        if encoder_states is None:
            raise ValueError(
                "A decoder's block attends to the states of an encoder: hand it `encoder_states`, "
                "(batch, source length, hidden_dim). Received: encoder_states=None"
            )

        def decoded(
            x,
            position_bias,
            shared_positions,
            padding_mask,
            output_positions,
            encoder_states,
            encoder_padding_mask,
        ):
            def across(x):
                return self.cross_attention(
                    x,
                    encoder_states,
                    encoder_padding_mask=encoder_padding_mask,
                    training=training,
                )

            part = self._attention_part(position_bias, shared_positions, padding_mask, training)
            parts = [part, self._across(across)]
            return self._around(parts, x, output_positions, training)

        tensors = (
            *(hidden_states, position_bias, shared_positions, padding_mask, output_positions),
            *(encoder_states, encoder_padding_mask),
        )
        return recomputed(self, decoded, tensors)

    def _across(self, function):
        return function, self.cross_attention_norm, self.cross_attention_dropout

    def _across_kept(self, encoded):
        kept, mask = encoded
        return self._across(lambda x: self.cross_attention.attended(x, kept, mask))

    def prefill(self, hidden_states, position_bias=None, shared_positions=None, *, encoded):
        """Returns the answer of a call without dropout, and the cache of the attention.

        Args:
            hidden_states, position_bias, shared_positions: as in the call arguments.
            encoded: pair: what the cross-attention's `keys_and_values` returned, and the padding
                mask of the encoder.
        """
        return self._with_cache(
            self.attention.prefill,
            hidden_states,
            [self._across_kept(encoded)],
            position_bias=position_bias,
            shared_positions=shared_positions,
        )

    def step(
        self,
        hidden_states,
        cache,
        index,
        position_bias=None,
        layer_positions=None,
        *,
        encoded,
    ):
        """Returns the hidden states of new tokens, and the cache with theirs.

        Args:
            hidden_states: those of the new tokens, `(batch, count, hidden_dim)`.
            cache, index, position_bias, layer_positions: as of the attention's `step`.
            encoded: as of `prefill`.
        """
        return self._with_cache(
            self.attention.step,
            hidden_states,
            [self._across_kept(encoded)],
            cache=cache,
            index=index,
            position_bias=position_bias,
            layer_positions=layer_positions,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "cross_attention": keras.saving.serialize_keras_object(self.cross_attention),
        }

    @classmethod
    def from_config(cls, config):
        cross_attention = unbuilt_layer(config["cross_attention"])
        return super().from_config({**config, "cross_attention": cross_attention})
