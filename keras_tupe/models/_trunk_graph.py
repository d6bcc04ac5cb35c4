"""The functional graph of an encoder or a decoder: from token ids to hidden states."""

import dataclasses

import keras
import numpy as np

from keras_tupe.layers import (
    CombinedPositionBias,
    CrossAttention,
    DecoderBlock,
    Dropout,
    EncoderBlock,
    TokenEmbedding,
)
from keras_tupe.layers._normalization import LayerNormalization
from keras_tupe.models._attention_check import check_attention, segments_of_dims
from keras_tupe.models._kept_heads import layer_dims


@dataclasses.dataclass(frozen=True)
class TrunkSettings:
    """What a trunk is made of beside its position method; see `TupeBackbone`."""

    vocabulary_size: int
    num_layers: int
    intermediate_dim: int
    num_segments: int
    normalize_first: bool
    zero_padded_embeddings: bool
    activation: str
    normalize_embeddings: bool
    embedding_dim: int | None = None
    num_groups: int | None = None
    token_embedding: TokenEmbedding | None = None
    scale_embeddings: bool = False
    kept_heads: list | None = None


class TrunkGraph:
    """Inputs, outputs and named parts of a stack of blocks: an encoder without head, or a decoder.

    Args:
        method: the `PositionMethod`.
        options: its resolved options.
        dims: a `Dims`.
        settings: a `TrunkSettings`.
        encoder_width: width of an encoder's states, which the blocks of a decoder attend to; `None`
            for blocks that attend to nothing else.

    Attributes:
        inputs: dictionary of symbolic inputs; a decoder has `encoder_states` and
            `encoder_padding_mask` too.
        hidden_states: symbolic, the last ones.
        token_embedding: layer.
        position_bias: layer, or `None`.
        block_inputs: the hidden states that each block takes, symbolic, in order.
        block_terms: dictionary of what all blocks take beside them and the padding mask.
    """

    def __init__(self, method, options, dims, settings, encoder_width=None):
        self._dims, self._settings = dims, settings
        self._method, self._options = method, options
        self.token_embedding = settings.token_embedding or self._embedding(
            "token_embedding", settings.vocabulary_size
        )
        embed = method.embed(dims, options) if method.embed else None
        self.position_bias = method.bias(dims, options) if method.bias else None
        shared_positions = method.shared(dims, options) if method.shared else None
        make = self._block if encoder_width is None else self._decoder_block
        groups = [make(*group) for group in groups_of(settings)]
        blocks = [groups[group_of(settings, layer)] for layer in range(settings.num_layers)]
        names = ("token_ids", "padding_mask", *(("segment_ids",) if settings.num_segments else ()))
        self.inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        x = self._embedded(embed)
        terms = self._position_terms(x, shared_positions)
        if encoder_width is not None:
            terms |= self._encoder_inputs(encoder_width)
        self.block_inputs, self.block_terms = [], terms
        for block in blocks:
            self.block_inputs.append(x)
            x = block(x, **terms, padding_mask=self.inputs["padding_mask"])
        if settings.normalize_first:
            x = self._normalization("final_layer_norm")(x)
        self.hidden_states = x

    def _embedding(self, name, rows):
        return TokenEmbedding(
            rows,
            self._settings.embedding_dim or self._dims.hidden_dim,
            initializer=self._dims.initializer(),
            dtype=self._dims.dtype,
            name=name,
        )

    def _encoder_inputs(self, width):
        """Returns what the blocks of a decoder get of the encoder; they become inputs."""
        dtype = keras.dtype_policies.get(self._dims.dtype).compute_dtype
        name = "encoder_padding_mask"
        given = {
            "encoder_states": keras.Input((None, width), dtype=dtype, name="encoder_states"),
            name: keras.Input((None,), dtype="int32", name=name),
        }
        self.inputs |= given
        return given

    def _attention(self, layer):
        dims = layer_dims(self._dims, layer, self._settings.kept_heads)
        attention = self._method.attention(dims, self._options)
        check_attention(attention, dims)
        return attention

    def _block(self, index, layer):
        return EncoderBlock(
            self._attention(layer), self._settings.intermediate_dim, **self._of_block(index)
        )

    def _decoder_block(self, index, layer):
        dims = self._dims
        across = CrossAttention(
            dims.num_heads,
            dims.key_dim,
            dropout=dims.dropout,
            kernel_initializer=dims.initializer(),
            dtype=dims.dtype,
            name="cross_attention",
        )
        return DecoderBlock(
            self._attention(layer),
            across,
            self._settings.intermediate_dim,
            **self._of_block(index),
        )

    def _of_block(self, index):
        dims, settings = self._dims, self._settings
        return {
            "dropout": dims.dropout,
            "normalize_first": settings.normalize_first,
            "layer_norm_epsilon": dims.layer_norm_epsilon,
            "kernel_initializer": dims.initializer(),
            "activation": settings.activation,
            "dtype": dims.dtype,
            "name": f"block_{index}",
        }

    def _normalization(self, name):
        dims = self._dims
        return LayerNormalization(epsilon=dims.layer_norm_epsilon, dtype=dims.dtype, name=name)

    def _embedded(self, embed):
        """Returns the hidden states that enter the first block."""
        dims, settings = self._dims, self._settings
        x = self.token_embedding(self.inputs["token_ids"])
        if settings.scale_embeddings:
            scale = np.float64(dims.hidden_dim**0.5)  # Keras makes a float32 of a plain number
            x = keras.layers.Rescaling(scale, dtype=dims.dtype, name="embeddings_scale")(x)
        if settings.num_segments:
            segments = self._embedding("segment_embedding", settings.num_segments)
            x = keras.layers.Add(dtype=dims.dtype, name="embeddings_sum")(
                [x, segments(self.inputs["segment_ids"])]
            )
        x = embed(x) if embed else x
        if settings.normalize_embeddings:
            x = self._normalization("embeddings_layer_norm")(x)
        x = Dropout(dims.dropout, dtype=dims.dtype, name="embeddings_dropout")(x)
        if settings.embedding_dim:
            projection = keras.layers.Dense(
                dims.hidden_dim,
                kernel_initializer=dims.initializer(),
                dtype=dims.dtype,
                name="embeddings_projection",
            )
            x = projection(x)
        if settings.zero_padded_embeddings:
            zero_padded = _ZeroPadded(dtype=dims.dtype, name="zero_padded")
            x = zero_padded(x, padding_mask=self.inputs["padding_mask"])
        return x

    def _position_terms(self, x, shared_positions):
        """Returns what every block is called with beside the hidden states."""
        segments = segments_of_dims(self._dims)
        if segments is not None:
            layer = _MemoryAndSegment(segments.whole, dtype=self._dims.dtype, name="one_segment")
            x = layer(x)
        bias = None
        if self.position_bias:
            takes_parts = isinstance(self.position_bias, CombinedPositionBias)
            bias = self.position_bias(x, **({"as_parts": True} if takes_parts else {}))
        shared = shared_positions(x) if shared_positions else None
        return {"position_bias": bias, "shared_positions": shared}


class EncoderGraph(TrunkGraph):
    """The trunk of an encoder, and its pooler.

    Attributes:
        outputs: dictionary of `sequence_output` and `pooled_output`.
        before_last_block: Keras model, from the inputs to all that the last block takes.
    """

    def __init__(self, method, options, dims, settings):
        super().__init__(method, options, dims, settings)
        pooler = keras.layers.Dense(
            dims.hidden_dim,
            activation="tanh",
            kernel_initializer=dims.initializer(),
            dtype=dims.dtype,
            name="pooled_dense",
        )
        x = self.hidden_states
        self.outputs = {"sequence_output": x, "pooled_output": pooler(x[:, 0, :])}
        terms = {name: x for name, x in self.block_terms.items() if x is not None}
        self.before_last_block = keras.Model(
            self.inputs,
            {"hidden_states": self.block_inputs[-1], **terms},
            name="before_last_block",
        )


def group_of(settings, layer):
    """Returns the number of the block that a layer uses.

    Args:
        settings: what has `num_layers` and `num_groups`, such as a `TupeBackbone`.
        layer: number of the layer.
    """
    return layer // (settings.num_layers // (settings.num_groups or settings.num_layers))


def groups_of(settings):
    """Returns `(number of a block, number of the first layer that uses it)` of each block."""
    first = {}
    for layer in range(settings.num_layers):
        first.setdefault(group_of(settings, layer), layer)
    return list(first.items())


@keras.saving.register_keras_serializable(package="keras_tupe")
class _MemoryAndSegment(keras.layers.Layer):
    """Zeros of the length of memory and segment, for layers that read no more than the length."""

    def __init__(self, length, **kwargs):
        super().__init__(**kwargs)
        self.length = length

    def call(self, hidden_states):
        width = hidden_states.shape[-1]
        return keras.ops.zeros((1, self.length, width), hidden_states.dtype)

    def compute_output_spec(self, hidden_states):
        shape = (1, self.length, hidden_states.shape[-1])
        return keras.KerasTensor(shape, hidden_states.dtype)

    def get_config(self):
        return {**super().get_config(), "length": self.length}


@keras.saving.register_keras_serializable(package="keras_tupe")
class _ZeroPadded(keras.layers.Layer):
    """Sets the vectors of padded tokens to zero, as TUPE's released code does."""

    def call(self, hidden_states, padding_mask):
        keep = keras.ops.cast(keras.ops.expand_dims(padding_mask, -1), hidden_states.dtype)
        return hidden_states * keep

    def compute_output_shape(self, hidden_states_shape, padding_mask_shape=None):
        return hidden_states_shape
