"""The encoder and the decoder of the original Transformer."""

import dataclasses
import inspect

import keras
import keras_hub

from keras_tupe.models.presets.classes import PresetModel
from keras_tupe.trunk.config import TrunkConfig, whole
from keras_tupe.trunk.inputs import check_inputs
from keras_tupe.trunk.trunk import Trunk

SIDES = ("encoder", "decoder")


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeSeq2SeqBackbone(PresetModel, keras_hub.models.Backbone):
    """A Transformer's encoder and decoder, whose way of knowing positions is an argument.

    Both are the trunk of `TupeBackbone`: embeddings, blocks, the positional method in each
    self-attention. The decoder's is causal, and each of its blocks attends to the encoder's last
    states too, see `DecoderBlock`. There cross-attention has no term of positions, so that any
    method can be used: what a method adds to embeddings reaches it through the states.

    `encoder` and `decoder` are Keras models of their own. They share the token embedding, which the
    output layer of `TupeSeq2SeqLM` is tied to as well.

    Differences from the sources: the original Transformer has ReLU, here it is the exact GELU, as
    in BART, which also has a layer normalization after the embeddings; the original has none
    (`normalize_embeddings=False`), no biases in attention, and scales token vectors by the square
    root of their width (`scale_embeddings=True`).

    Args:
        vocabulary_size: number of tokens, of both sides together.
        num_layers: number of the encoder's blocks.
        num_heads: number of attention heads; must divide `hidden_dim`.
        hidden_dim: width of the hidden states.
        intermediate_dim: width of the feed-forward networks.
        position: name of a positional method, see `keras_tupe.positions.METHODS`, of both sides.
            Defaults to `"tupe_r"`.
        position_options: dictionary of the method's options, over its defaults.
        num_decoder_layers: number of the decoder's blocks. Defaults to `num_layers`.
        dropout: dropout rate of embeddings, attention scores and sublayer outputs, in [0, 1).
            Defaults to 0.1.
        max_sequence_length: rows of position tables, in tokens of one side. Defaults to 512.
        normalize_first: pre-LN blocks and last layer normalizations. Defaults to `False`.
        initializer_range: standard deviation of all new weights. Defaults to 0.02.
        layer_norm_epsilon: epsilon of every layer normalization. Defaults to 1e-5.
        activation: of the feed-forward networks: `"gelu"` or `"gelu_approximate"`. Defaults to
            `"gelu"`.
        normalize_embeddings: whether a layer normalization is applied to the embeddings. Defaults
            to `True`.
        scale_embeddings: whether token vectors are multiplied by sqrt(hidden_dim) before positions
            are added. Defaults to `False`.
        dtype: Keras dtype policy.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dictionary of `encoder_token_ids` `(batch, source length)` and `decoder_token_ids`
            `(batch, target length)`, integers in [0, vocabulary_size), and of
            `encoder_padding_mask` and `decoder_padding_mask` of the same shapes, 1 = token. A
            method that frees the first token from positions frees the first one of each side.

    Returns:
        Dictionary of `encoder_sequence_output` `(batch, source length, hidden_dim)` and
        `decoder_sequence_output` `(batch, target length, hidden_dim)`, in the compute dtype.

    Masking: by the padding masks; a token of the decoder sees no later one.

    Raises:
        ValueError: for impossible arguments, unknown methods or options, inputs that do not fit
            each other, a length (where it is known) above `max_sequence_length` for a method with a
            table, and, in eager calls, ids outside the vocabulary.
        TypeError: for ids that are not integers.

    Example:
        >>> import numpy as np
        >>> backbone = TupeSeq2SeqBackbone(100, 1, 2, 16, 32, position="rope")
        >>> ids = {"encoder_token_ids": np.array([[2, 7, 9, 3]])}
        >>> ids["decoder_token_ids"] = np.array([[2, 8]])
        >>> masks = {"encoder_padding_mask": np.ones((1, 4), int)}
        >>> masks["decoder_padding_mask"] = np.ones((1, 2), int)
        >>> outputs = backbone({**ids, **masks})
        >>> tuple(outputs["decoder_sequence_output"].shape)
        (1, 2, 16)

    References:
        Vaswani et al. Attention Is All You Need. 2017. https://arxiv.org/abs/1706.03762
        Lewis et al. BART. ACL 2020. https://arxiv.org/abs/1910.13461
    """

    preset_file = "config.json"
    attention_pattern = "full"  # of the encoder

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        position="tupe_r",
        position_options=None,
        num_decoder_layers=None,
        dropout=0.1,
        max_sequence_length=512,
        normalize_first=False,
        initializer_range=0.02,
        layer_norm_epsilon=1e-5,
        activation="gelu",
        normalize_embeddings=True,
        scale_embeddings=False,
        dtype=None,
        **kwargs,
    ):
        config = TrunkConfig.of(locals())
        if num_decoder_layers is None:
            num_decoder_layers = config.num_layers
        of_decoder = {
            "num_layers": whole()("num_decoder_layers", num_decoder_layers),
            "attention_pattern": "causal",
            "pattern_options": None,
        }
        # === Layers ===
        inputs = {name: _input(name) for name in config.input_names}
        encoder_trunk = Trunk(config, dtype)
        encoder = keras.Model(inputs, encoder_trunk(inputs), name="encoder")
        decoder_trunk = Trunk(
            dataclasses.replace(config, **of_decoder),
            dtype,
            encoder_trunk.token_embedding,
            cross_attention=True,
        )
        inputs = {name: _input(name) for name in config.input_names}
        compute_dtype = encoder_trunk.dtype.compute_dtype
        inputs["encoder_states"] = keras.Input(
            (None, config.hidden_dim), dtype=compute_dtype, name="encoder_states"
        )
        inputs["encoder_padding_mask"] = _input("encoder_padding_mask")
        decoder = keras.Model(inputs, decoder_trunk(inputs), name="decoder")
        # === Functional graph ===
        inputs = [f"{side}_{kind}" for side in SIDES for kind in ("token_ids", "padding_mask")]
        inputs = {name: _input(name) for name in inputs}
        mask = inputs["encoder_padding_mask"]
        states = encoder({"token_ids": inputs["encoder_token_ids"], "padding_mask": mask})
        decoded = decoder(decoder_inputs(inputs, states))
        outputs = {"encoder_sequence_output": states, "decoder_sequence_output": decoded}
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)
        # === Config ===
        self.encoder, self.decoder = encoder, decoder
        self.encoder_trunk, self.decoder_trunk = encoder_trunk, decoder_trunk
        self.token_embedding = encoder_trunk.token_embedding
        for setting, value in self._settings().items():
            setattr(self, setting, value)

    def _settings(self):
        settings = self.encoder_trunk.config.as_json()
        settings["num_decoder_layers"] = self.decoder_trunk.config.num_layers
        names = inspect.signature(TupeSeq2SeqBackbone).parameters
        return {name: value for name, value in settings.items() if name in names}

    @property
    def encoder_blocks(self):
        """The `EncoderBlock` of each layer of the encoder, in order."""
        return list(self.encoder_trunk.blocks)

    @property
    def decoder_blocks(self):
        """The `DecoderBlock` of each layer of the decoder, in order."""
        return list(self.decoder_trunk.blocks)

    @property
    def has_length_limit(self):
        """Whether position tables bound the length of each side to `max_sequence_length`."""
        return self.encoder_trunk.config.has_length_limit

    def call(self, inputs, training=None, mask=None):
        check_inputs(inputs, [tensor.name for tensor in self.inputs])
        return super().call(inputs, training=training, mask=mask)

    def get_config(self):
        return {**super().get_config(), **self._settings()}


def _input(name):
    return keras.Input((None,), dtype="int32", name=name)


def decoder_inputs(inputs, encoder_states):
    """Returns what the decoder of a backbone takes.

    Args:
        inputs: dictionary, as the backbone takes it.
        encoder_states: `(batch, source length, hidden_dim)`.
    """
    return {
        "token_ids": inputs["decoder_token_ids"],
        "padding_mask": inputs["decoder_padding_mask"],
        "encoder_states": encoder_states,
        "encoder_padding_mask": inputs["encoder_padding_mask"],
    }
