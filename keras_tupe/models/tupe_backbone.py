"""The encoder."""

import keras
import keras_hub

from keras_tupe import positions
from keras_tupe.models._argument_checks import check_sharing, check_sizes, check_token_embedding
from keras_tupe.models._inputs import check_inputs, check_positions
from keras_tupe.models._kept_heads import check_kept_heads, shared_dims
from keras_tupe.models._pattern_checks import (
    check_length,
    check_pattern,
    check_segments,
    is_causal,
)
from keras_tupe.models._trunk_graph import EncoderGraph, TrunkSettings, group_of
from keras_tupe.models.presets.classes import PresetModel
from keras_tupe.models.presets.size_check import check_memory


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeBackbone(PresetModel, keras_hub.models.Backbone):
    """A BERT encoder whose way of knowing positions is an argument.

    The trunk is BERT's: token (and segment) embeddings, layer normalization, dropout, encoder
    blocks, a tanh pooler over [CLS]. What the positional method does is asked of its record in
    `keras_tupe.positions`: it may add to the embeddings, make one bias that all blocks
    share, or replace the attention. The bias is computed once per forward pass.

    Equation of a block: see `EncoderBlock`; of the pooler:

        pooled_output = tanh(sequence_output[:, 0] W + b)

    Differences from the sources: the defaults are TUPE's trunk, that is BERT with every layer
    normalization epsilon 1e-5 (BERT: 1e-12) and no segment embeddings. TUPE's released code
    also sets the embeddings of padded tokens to zero (`zero_padded_embeddings=True`).

    Args:
        vocabulary_size: number of tokens.
        num_layers: number of encoder blocks.
        num_heads: number of attention heads; must divide `hidden_dim`.
        hidden_dim: width of the hidden states.
        intermediate_dim: width of the feed-forward networks.
        position: name of a positional method, see `keras_tupe.positions.METHODS`. Defaults to
            `"tupe_r"`.
        position_options: dictionary of the method's options, over its defaults.
        dropout: dropout rate of embeddings, attention scores and sublayer outputs, in [0, 1).
            Defaults to 0.1.
        max_sequence_length: rows of position tables, in tokens. Methods without a table run at
            any length. Defaults to 512.
        num_segments: number of segments; 0 means that the model takes no `segment_ids`.
        normalize_first: pre-LN blocks and a last layer normalization. Defaults to `False`.
        initializer_range: standard deviation of all new weights. Defaults to 0.02.
        layer_norm_epsilon: epsilon of every layer normalization. Defaults to 1e-5.
        zero_padded_embeddings: whether padded tokens enter the blocks as zeros.
        attention_pattern: name of the attention pattern, that is who attends to whom, see
            `keras_tupe.attention_patterns.PATTERNS`. Defaults to `"full"`.
        pattern_options: dictionary of the pattern's options, over its defaults.
        activation: of the feed-forward networks: `"gelu"`, the exact one, or `"gelu_approximate"`,
            GPT-2's by tanh. Defaults to `"gelu"`.
        normalize_embeddings: whether a layer normalization is applied to the embeddings, as in
            BERT; GPT-2 has none. Defaults to `True`.
        embedding_dim: width of token, segment and added position vectors and of their layer
            normalization, which a dense layer then maps to `hidden_dim` (ALBERT, ELECTRA). Defaults
            to `None`: they have `hidden_dim`, and there is no such layer.
        num_groups: number of blocks that have weights of their own, which must divide
            `num_layers`; num_layers / num_groups layers in a row use the same (ALBERT). Whatever
            tables a method has in its blocks are then shared like them. Defaults to `None`: each
            layer has its own.
        memory_length: tokens before each segment of a row that it attends to in every block,
            without a gradient to their hidden states (Transformer-XL); see `call_with_memory`.
            Position tables have a row for each token of memory and segment. Defaults to 0.
        segment_length: tokens of the segments that a row of any length is cut into. Defaults to
            `memory_length`, and without a memory to whole rows.
        kept_heads: for each layer the list of its heads, by their numbers from 0 to `num_heads` -
            1, where others were removed (see `prune_heads`); position terms that layers share
            have the heads that any layer has. Defaults to `None`: all.
        token_embedding: a `TokenEmbedding` of another model to use as it is, of the same sizes.
            Not part of the configuration: what is loaded from files has one of its own. Defaults
            to `None`: a new one.
        dtype: Keras dtype policy. Attention logits, biases and softmax are in at least
            float32 under every policy.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dictionary of `token_ids` `(batch, length)` integers in [0, vocabulary_size),
            `padding_mask` of the same shape, 1 = real token, and `segment_ids` if there are
            segments. The length may differ from call to call. [CLS] must come first.
        output_positions: integers `(batch, count)` in [0, length), where outputs are wanted: the
            last block leaves its feed-forward network out at all others, as the tasks do when they
            train. Defaults to all.

    Returns:
        Dictionary of `sequence_output` `(batch, length, hidden_dim)` and `pooled_output`
        `(batch, hidden_dim)`, in the compute dtype. With `output_positions`: of `sequence_output`
        `(batch, count, hidden_dim)` alone.

    Masking: by `padding_mask`; what stands at padded positions cannot change the outputs of real
    tokens.

    Raises:
        ValueError: for impossible arguments, unknown methods, patterns or options, a pattern or a
            memory that the method is not defined for, inputs that do not fit each other, fewer
            tokens than global ones, a length (where it is known) above `max_sequence_length` for
            a method with a table, and, in eager calls, ids outside the vocabulary.
        TypeError: for ids that are not integers.

    Example:
        >>> import numpy as np
        >>> backbone = TupeBackbone(100, 1, 2, 16, 32, position="tupe_a")
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> outputs = backbone({"token_ids": ids, "padding_mask": np.ones_like(ids)})
        >>> tuple(outputs["sequence_output"].shape), tuple(outputs["pooled_output"].shape)
        ((1, 4, 16), (1, 16))

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """

    preset_file = "config.json"

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        position="tupe_r",
        position_options=None,
        dropout=0.1,
        max_sequence_length=512,
        num_segments=0,
        normalize_first=False,
        initializer_range=0.02,
        layer_norm_epsilon=1e-5,
        zero_padded_embeddings=False,
        attention_pattern="full",
        pattern_options=None,
        activation="gelu",
        normalize_embeddings=True,
        embedding_dim=None,
        num_groups=None,
        memory_length=0,
        segment_length=None,
        token_embedding=None,
        kept_heads=None,
        dtype=None,
        **kwargs,
    ):
        check_sizes(
            num_segments,
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            max_sequence_length=max_sequence_length,
        )
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim = map(
            int, (vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim)
        )
        check_sharing(embedding_dim, num_groups, num_layers)
        kept_heads = check_kept_heads(kept_heads, num_layers, num_heads, num_groups)
        check_token_embedding(token_embedding, vocabulary_size, embedding_dim or hidden_dim)
        method = positions.get(position)
        options = method.resolve(position_options)
        tables = dict(options)
        if method.has_length_limit(options):
            tables["max_sequence_length"] = max_sequence_length
        settings = TrunkSettings(
            vocabulary_size,
            num_layers,
            intermediate_dim,
            num_segments,
            normalize_first,
            zero_padded_embeddings,
            activation,
            normalize_embeddings,
            embedding_dim,
            num_groups,
            token_embedding,
            kept_heads=kept_heads,
        )
        sizes = {**vars(settings), "num_heads": num_heads, "hidden_dim": hidden_dim}
        check_memory(sizes, tables)
        pattern_options = check_pattern(
            attention_pattern,
            pattern_options,
            position,
            max_sequence_length,
            num_layers,
            num_groups,
        )
        dims = positions.Dims(
            num_heads,
            hidden_dim // num_heads,
            max_sequence_length,
            dropout=dropout,
            initializer_range=initializer_range,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=dtype,
            attention_pattern=attention_pattern,
            pattern_options=pattern_options,
            memory_length=memory_length,
            segment_length=segment_length,
        )
        check_segments(memory_length, segment_length, dims, position, options)
        dims = shared_dims(dims, position, kept_heads)
        graph = EncoderGraph(method, options, dims, settings)
        super().__init__(inputs=graph.inputs, outputs=graph.outputs, dtype=dtype, **kwargs)

        # === Config ===
        self.token_embedding = graph.token_embedding
        self.position_bias = graph.position_bias  # a layer, or None
        # behind a function: Keras would list its layers, which are this model's, a second time
        before_last_block = graph.before_last_block
        self._before_last_block = lambda *args, **kwargs: before_last_block(*args, **kwargs)
        block_inputs = tuple(graph.block_inputs)
        self._block_inputs = lambda: block_inputs
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.position = position
        self.position_options = options
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.normalize_first = normalize_first
        self.initializer_range = initializer_range
        self.layer_norm_epsilon = layer_norm_epsilon
        self.zero_padded_embeddings = zero_padded_embeddings
        self.attention_pattern = attention_pattern
        self.pattern_options = pattern_options
        self.activation = activation
        self.normalize_embeddings = normalize_embeddings
        self.embedding_dim = embedding_dim
        self.num_groups = num_groups
        self.memory_length = memory_length
        self.segment_length = segment_length or memory_length or None
        self.kept_heads = kept_heads

    @property
    def blocks(self):
        """The `EncoderBlock` of each layer, in order; layers of one group have the same."""
        numbers = [group_of(self, layer) for layer in range(self.num_layers)]
        return [self.get_layer(f"block_{number}") for number in numbers]

    @property
    def has_length_limit(self):
        """Whether position tables bound the length to `max_sequence_length`."""
        if self.segment_length:
            return False  # they have rows for memory and segment, and a row has any length
        return positions.get(self.position).has_length_limit(self.position_options)

    @property
    def is_causal(self):
        """Whether no token attends to a later one, in any layer."""
        return is_causal(self.attention_pattern, self.pattern_options, self.num_layers)

    def call(self, inputs, training=None, mask=None, output_positions=None):
        names = [tensor.name for tensor in self.inputs]
        check_inputs(inputs, names)
        check_length(inputs["token_ids"].shape, self.pattern_options)
        if output_positions is None:
            return super().call(inputs, training=training, mask=mask)
        check_positions("output_positions", output_positions, tuple(inputs["token_ids"].shape))
        inputs = {name: keras.ops.cast(inputs[name], "int32") for name in names}
        x = self.blocks[-1](
            **self._before_last_block(inputs, training=training),
            padding_mask=inputs["padding_mask"],
            output_positions=output_positions,
            training=training,
        )
        if self.normalize_first:
            x = self.get_layer("final_layer_norm")(x, training=training)
        return {"sequence_output": x}

    def compute_output_spec(self, inputs, training=None, mask=None, output_positions=None):
        outputs = super().compute_output_spec(inputs, training=training, mask=mask)
        if output_positions is None:
            return outputs
        shape = (*output_positions.shape, self.hidden_dim)
        return {"sequence_output": keras.KerasTensor(shape, self.compute_dtype)}

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "position": self.position,
            "position_options": dict(self.position_options),
            "dropout": self.dropout,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "normalize_first": self.normalize_first,
            "initializer_range": self.initializer_range,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "zero_padded_embeddings": self.zero_padded_embeddings,
            "attention_pattern": self.attention_pattern,
            "pattern_options": dict(self.pattern_options),
            "activation": self.activation,
            "normalize_embeddings": self.normalize_embeddings,
            "embedding_dim": self.embedding_dim,
            "num_groups": self.num_groups,
            "memory_length": self.memory_length,
            "segment_length": self.segment_length,
            "kept_heads": self.kept_heads and [list(heads) for heads in self.kept_heads],
        }
