"""The functional graph of an encoder: from token ids to hidden states."""

import dataclasses

import keras

from keras_tupe.layers import CombinedPositionBias, Dropout, EncoderBlock, TokenEmbedding
from keras_tupe.layers._normalization import LayerNormalization


@dataclasses.dataclass(frozen=True)
class TrunkSettings:
    """What an encoder is made of beside its position method; see `TupeBackbone`."""

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


class EncoderGraph:
    """Inputs, outputs and named parts of an encoder.

    Args:
        method: the `PositionMethod`.
        options: its resolved options.
        dims: a `Dims`.
        settings: a `TrunkSettings`.

    Attributes:
        inputs: dictionary of symbolic inputs.
        outputs: dictionary of `sequence_output` and `pooled_output`.
        token_embedding: layer.
        position_bias: layer, or `None`.
        before_last_block: Keras model, from the inputs to all that the last block takes.
        block_inputs: the hidden states that each block takes, symbolic, in order.
    """

    def __init__(self, method, options, dims, settings):
        self._dims, self._settings = dims, settings
        self._method, self._options = method, options
        self.token_embedding = settings.token_embedding or self._embedding(
            "token_embedding", settings.vocabulary_size
        )
        embed = method.embed(dims, options) if method.embed else None
        self.position_bias = method.bias(dims, options) if method.bias else None
        shared_positions = method.shared(dims, options) if method.shared else None
        groups = [self._block(*group) for group in groups_of(settings)]
        blocks = [groups[group_of(settings, layer)] for layer in range(settings.num_layers)]
        names = ("token_ids", "padding_mask", *(("segment_ids",) if settings.num_segments else ()))
        self.inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        x = self._embedded(embed)
        terms = self._position_terms(x, shared_positions)
        self.block_inputs = []
        for block in blocks:
            self.block_inputs.append(x)
            x = block(x, **terms, padding_mask=self.inputs["padding_mask"])
        if settings.normalize_first:
            x = self._normalization("final_layer_norm")(x)
        pooler = keras.layers.Dense(
            dims.hidden_dim,
            activation="tanh",
            kernel_initializer=dims.initializer(),
            dtype=dims.dtype,
            name="pooled_dense",
        )
        self.outputs = {"sequence_output": x, "pooled_output": pooler(x[:, 0, :])}
        terms = {name: x for name, x in terms.items() if x is not None}
        self.before_last_block = keras.Model(
            self.inputs,
            {"hidden_states": self.block_inputs[-1], **terms},
            name="before_last_block",
        )

    def _embedding(self, name, rows):
        return TokenEmbedding(
            rows,
            self._settings.embedding_dim or self._dims.hidden_dim,
            initializer=self._dims.initializer(),
            dtype=self._dims.dtype,
            name=name,
        )

    def _block(self, index, layer):
        dims, settings = dataclasses.replace(self._dims, layer_index=layer), self._settings
        attention = self._method.attention(dims, self._options)
        check_attention(attention, dims)
        return EncoderBlock(
            attention,
            settings.intermediate_dim,
            dropout=dims.dropout,
            normalize_first=settings.normalize_first,
            layer_norm_epsilon=dims.layer_norm_epsilon,
            kernel_initializer=dims.initializer(),
            activation=settings.activation,
            dtype=dims.dtype,
            name=f"block_{index}",
        )

    def _normalization(self, name):
        dims = self._dims
        return LayerNormalization(epsilon=dims.layer_norm_epsilon, dtype=dims.dtype, name=name)

    def _embedded(self, embed):
        """Returns the hidden states that enter the first block."""
        dims, settings = self._dims, self._settings
        x = self.token_embedding(self.inputs["token_ids"])
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
        bias = None
        if self.position_bias:
            takes_parts = isinstance(self.position_bias, CombinedPositionBias)
            bias = self.position_bias(x, **({"as_parts": True} if takes_parts else {}))
        shared = shared_positions(x) if shared_positions else None
        return {"position_bias": bias, "shared_positions": shared}


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


def check_attention(attention, dims):
    """Refuses an attention layer that is not the one that the encoder asked for.

    Args:
        attention: what a position method made.
        dims: the `Dims` that it was given.

    Raises:
        ValueError: if it has another attention pattern: it would see what it must not.
    """
    wanted = dims.attention_pattern, dict(dims.pattern_options), dims.layer_index
    pattern = getattr(attention, "attention_pattern", "full")
    options, index = (getattr(attention, x, None) for x in ("pattern_options", "layer_index"))
    received = pattern, options, index
    if pattern == "full" == dims.attention_pattern or received == wanted:
        return
    raise ValueError(
        "The attention layer of a position method must have the attention pattern of the encoder: "
        "make it with `keras_tupe.positions.attention`, or hand `attention_pattern`, "
        "`pattern_options` and `layer_index` of `dims` on to it. "
        f"Received: a layer with {received}, expected {wanted}"
    )


@keras.saving.register_keras_serializable(package="keras_tupe")
class _ZeroPadded(keras.layers.Layer):
    """Sets the vectors of padded tokens to zero, as TUPE's released code does."""

    def call(self, hidden_states, padding_mask):
        keep = keras.ops.cast(keras.ops.expand_dims(padding_mask, -1), hidden_states.dtype)
        return hidden_states * keep

    def compute_output_shape(self, hidden_states_shape, padding_mask_shape=None):
        return hidden_states_shape
