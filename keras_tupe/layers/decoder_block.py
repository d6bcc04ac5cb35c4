"""One layer of a decoder beside an encoder: two attentions and a feed-forward network."""

import keras

from keras_tupe.layers._parts import unbuilt_layer
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
        self.cross_attention_norm = self._normalization("cross_attention_layer_norm")
        self.cross_attention_dropout = self._dropout("cross_attention_dropout")

    def build(self, hidden_states_shape, *args):
        super().build(hidden_states_shape)
        self.cross_attention.build(hidden_states_shape)
        self.cross_attention_norm.build(hidden_states_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "cross_attention": keras.saving.serialize_keras_object(self.cross_attention),
        }

    @classmethod
    def from_config(cls, config):
        cross_attention = unbuilt_layer(config["cross_attention"])
        return super().from_config({**config, "cross_attention": cross_attention})
