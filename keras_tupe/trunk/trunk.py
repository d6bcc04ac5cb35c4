"""The trunk: the layers of a stack of blocks, and the one way from ids to hidden states."""

import inspect

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import (
    CombinedPositionBias,
    CrossAttention,
    DecoderBlock,
    Dropout,
    EncoderBlock,
    TokenEmbedding,
)
from keras_tupe.layers._dense import Dense
from keras_tupe.layers._normalization import LayerNormalization

# What a position method must hand on to an attention layer, by what it would lack.
_ASKED = {
    "the memory of the encoder": ("memory_length", "segment_length"),
    "the heads of its layer": ("num_heads", "shared_heads"),
    "the attention pattern of the encoder": ("attention_pattern", "pattern_options", "layer_index"),
}


class Trunk:
    """The layers of an encoder without head, or of a decoder, and the way through them.

    Names of layers and the order in which they are made are a format: files of weights go by the
    names, and an initializer draws its seed when it is made.

    Args:
        config: a `TrunkConfig`.
        dtype: Keras dtype policy of all layers, `None` for the global one.
        token_embedding: the `TokenEmbedding` of another trunk, to share it.
        cross_attention: whether each block attends to the states of an encoder too.

    Call arguments:
        inputs: dictionary, symbolic or not, of `token_ids`, `padding_mask` and, if there are
            segments, `segment_ids`, integers `(batch, length)`; of a decoder also `encoder_states`
            and `encoder_padding_mask`.
        each: what is done with a block: (number of the layer, block, hidden states, terms) -> the
            next hidden states. Defaults to calling it.
        terms: what `position_terms` returned, where it is known already.
        start: position of the first token. Defaults to 0.

    Returns:
        Hidden states `(batch, length, hidden_dim)`.

    Raises:
        TypeError, ValueError: for a `token_embedding` that is none or has other sizes, or a layer
            of a position method that does not heed what it is told.
    """

    def __init__(self, config, dtype=None, token_embedding=None, cross_attention=False):
        self.config, self.dtype = config, keras.dtype_policies.get(dtype)
        method, dims = config.method, config.dims(dtype)

        def layer_of(factory):
            return factory(dims, config.position_options) if factory else None

        def norm(name):
            return LayerNormalization(epsilon=config.layer_norm_epsilon, dtype=dtype, name=name)

        def embedding(rows, name):
            width, initializer = config.embedding_width, dims.initializer()
            return TokenEmbedding(rows, width, initializer=initializer, dtype=dtype, name=name)

        if token_embedding is not None:
            _check_token_embedding(token_embedding, config)
        self.token_embedding = token_embedding or embedding(
            config.vocabulary_size, "token_embedding"
        )
        self.position_embedding = layer_of(method.embed)
        if self.position_embedding:
            _check_embed(self.position_embedding)
        self.position_bias = layer_of(method.bias)
        self.shared_positions = layer_of(method.shared)
        blocks = {}
        for layer in range(config.num_layers):
            if config.group(layer) not in blocks:
                blocks[config.group(layer)] = self._block(layer, dims, cross_attention)
        self.blocks = [blocks[config.group(layer)] for layer in range(config.num_layers)]
        self.scale = self.segment_embedding = self.sum = self.projection = None
        if config.scale_embeddings:
            scale = np.float64(config.hidden_dim**0.5)  # Keras makes a float32 of a plain number
            self.scale = keras.layers.Rescaling(scale, dtype=dtype, name="embeddings_scale")
        if config.num_segments:
            self.segment_embedding = embedding(config.num_segments, "segment_embedding")
            self.sum = keras.layers.Add(dtype=dtype, name="embeddings_sum")
        self.embeddings_norm = (
            norm("embeddings_layer_norm") if config.normalize_embeddings else None
        )
        self.dropout = Dropout(config.dropout, dtype=dtype, name="embeddings_dropout")
        if config.embedding_dim:
            self.projection = Dense(
                config.hidden_dim,
                kernel_initializer=dims.initializer(),
                dtype=dtype,
                name="embeddings_projection",
            )
        self.zero_padded = _ZeroPadded(dtype=dtype, name="zero_padded")
        self.framed = _MemoryAndSegment(config.frame, dtype=dtype, name="one_segment")
        self.final_norm = norm("final_layer_norm") if config.normalize_first else None

    def _block(self, layer, dims, cross_attention):
        """Returns the block that a layer is the first to use."""
        config, own = self.config, self.config.dims(dims.dtype, layer)
        across = []
        if cross_attention:
            across = [
                CrossAttention(
                    dims.num_heads,
                    dims.key_dim,
                    dropout=config.dropout,
                    kernel_initializer=dims.initializer(),
                    dtype=dims.dtype,
                    name="cross_attention",
                )
            ]
        attention = config.method.attention(own, config.position_options)
        check_attention(attention, own)
        return (DecoderBlock if cross_attention else EncoderBlock)(
            attention,
            *across,
            config.intermediate_dim,
            dropout=config.dropout,
            normalize_first=config.normalize_first,
            layer_norm_epsilon=config.layer_norm_epsilon,
            kernel_initializer=dims.initializer(),
            activation=config.activation,
            dtype=dims.dtype,
            name=f"block_{config.group(layer)}",
        )

    def __call__(self, inputs, each=None, terms=None, start=0):
        given = {name: x for name, x in inputs.items() if name.startswith("encoder_")}
        given["padding_mask"] = inputs.get("padding_mask")
        x = self.embedded(inputs, start)
        terms = self.position_terms(x) if terms is None else terms
        each = each or (lambda layer, block, x, terms: block(x, **terms, **given))
        for layer, block in enumerate(self.blocks):
            x = each(layer, block, x, terms)
        return self.final_norm(x) if self.final_norm else x

    def embedded(self, inputs, start=0):
        """Returns the hidden states that enter the first block."""
        x = self.token_embedding(inputs["token_ids"])
        x = self.scale(x) if self.scale else x
        if self.segment_embedding:
            x = self.sum([x, self.segment_embedding(inputs["segment_ids"])])
        if self.position_embedding:
            x = self.position_embedding(x, start_index=start)
        for layer in (self.embeddings_norm, self.dropout, self.projection):
            x = layer(x) if layer else x
        if self.config.zero_padded_embeddings and "padding_mask" in inputs:
            x = self.zero_padded(x, padding_mask=inputs["padding_mask"])
        return x

    def position_terms(self, x=None, length=None):
        """Returns what every block is called with: of hidden states, or of so many tokens."""
        if x is None:
            width = self.config.embedding_width
            x = ops.zeros((1, self.config.frame or length, width), self.dtype.compute_dtype)
        elif self.config.frame:
            x = self.framed(x)
        parts = {"as_parts": True} if isinstance(self.position_bias, CombinedPositionBias) else {}
        return {
            "position_bias": self.position_bias(x, **parts) if self.position_bias else None,
            "shared_positions": self.shared_positions(x) if self.shared_positions else None,
        }


def check_attention(attention, dims):
    """Refuses an attention layer that would see or have something else than it was asked for."""
    for what, names in _ASKED.items():
        wanted, got = _said(dims, names), _said(attention, names)
        has_all_heads = "num_heads" in names and dims.heads is None
        if got != wanted and not has_all_heads:
            raise ValueError(
                f"The attention layer of a position method must have {what}: make it with "
                "`keras_tupe.positions.attention`, or hand "
                f"{', '.join(f'`{name}`' for name in names)} of `dims` on to it. Received: a layer "
                f"with {got}, expected {wanted}"
            )


def _said(one, names):
    """Returns what a `Dims` asks for or an attention layer has, the same words for the same."""
    found = {name: getattr(one, name, None) for name in names}
    if "segment_length" in names:
        memory = found["memory_length"] = found["memory_length"] or 0
        found["segment_length"] = found["segment_length"] or memory or None
    is_full = "attention_pattern" in names and (found["attention_pattern"] or "full") == "full"
    return {"attention_pattern": "full"} if is_full else found


def _check_embed(layer):
    """Refuses a layer of added positions that has those of the first tokens alone."""
    if "start_index" not in inspect.signature(layer.call).parameters:
        raise ValueError(
            "The layer that a position method makes by `embed` must take `start_index`, the "
            "position of the first token, since texts are written one token after the other: "
            "`call(self, hidden_states, start_index=0)`. "
            f"Received: a {type(layer).__name__} without it"
        )


def _check_token_embedding(layer, config):
    if not isinstance(layer, TokenEmbedding):
        raise TypeError(
            "`token_embedding` must be a `keras_tupe.layers.TokenEmbedding`, such as that of "
            f"another backbone. Received: {type(layer).__name__}"
        )
    sizes = config.vocabulary_size, config.embedding_width
    if (layer.vocabulary_size, layer.hidden_dim) != sizes:
        raise ValueError(
            "`token_embedding` must have the vocabulary of the model and vectors of its embedding "
            f"width, here {sizes[0]} and {sizes[1]}. Received: {layer.vocabulary_size} and "
            f"{layer.hidden_dim}"
        )


@keras.saving.register_keras_serializable(package="keras_tupe")
class _MemoryAndSegment(keras.layers.Layer):
    """Zeros of the length of memory and segment, for layers that read no more than the length."""

    def __init__(self, length, **kwargs):
        super().__init__(**kwargs)
        self.length = length

    def call(self, hidden_states):
        width = hidden_states.shape[-1]
        return ops.zeros((1, self.length, width), hidden_states.dtype)

    def compute_output_spec(self, hidden_states):
        return keras.KerasTensor((1, self.length, hidden_states.shape[-1]), hidden_states.dtype)

    def get_config(self):
        return {**super().get_config(), "length": self.length}


@keras.saving.register_keras_serializable(package="keras_tupe")
class _ZeroPadded(keras.layers.Layer):
    """Sets the vectors of padded tokens to zero, as TUPE's released code does."""

    def call(self, hidden_states, padding_mask):
        return hidden_states * ops.cast(ops.expand_dims(padding_mask, -1), hidden_states.dtype)

    def compute_output_shape(self, hidden_states_shape, padding_mask_shape=None):
        return hidden_states_shape
