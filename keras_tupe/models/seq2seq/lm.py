"""From one text to another."""

import keras
import keras_hub
from keras import ops

from keras_tupe.layers._parts import at_least_float32
from keras_tupe.models._language_model import LanguageModel
from keras_tupe.models._prompts import check_position_terms
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.seq2seq._checks import (
    check_backbone,
    check_preprocessor,
    check_sources,
    first_columns,
)
from keras_tupe.models.seq2seq.backbone import TupeSeq2SeqBackbone
from keras_tupe.models.seq2seq.preprocessor import TupeSeq2SeqLMPreprocessor
from keras_tupe.trunk.steps import Steps, written_rows


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeSeq2SeqLM(LanguageModel, TupeTask, keras_hub.models.Seq2SeqLM):
    """Encoder and decoder that learn from pairs of texts, and write the second to a first.

    With a preprocessor `fit` takes pairs of raw strings and `generate` takes sources and returns
    targets; without one both take the dictionary below.

    Equation: with the decoder's state x_i of target token i, and the embedding E_w of token w

        logits[i, w] = x_i . E_w

    for the target's token at i + 1. There is no weight beside the backbone's. Default loss, over
    the positions i of a batch,

        loss = sum_i weight_i * cross_entropy(token_{i+1}, logits_i) / sum_i weight_i

    `compile(loss=SmoothedCrossentropy(0.1))` smooths labels as the original Transformer does.

    Args:
        backbone: a `TupeSeq2SeqBackbone`.
        preprocessor: optional `TupeSeq2SeqLMPreprocessor`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        Logits `(batch, target length, vocabulary_size)`, in at least float32.

    Masking: as in the backbone.

    Raises:
        ValueError, TypeError: as the backbone, and if the preprocessor does not fit it.

    Notes:
        `compile(sampler=...)` says how the next token is chosen: `"greedy"` (the default), a
        `keras_tupe.models.BeamSearch`, or any `keras_hub.samplers.Sampler`.

    Example:
        >>> import numpy as np
        >>> model = TupeSeq2SeqLM(keras_tupe.models.TupeSeq2SeqBackbone(100, 1, 2, 16, 32))
        >>> inputs = {"encoder_token_ids": np.array([[2, 7, 9, 3]])}
        >>> inputs["decoder_token_ids"] = np.array([[2, 8]])
        >>> inputs["encoder_padding_mask"] = np.ones((1, 4), int)
        >>> inputs["decoder_padding_mask"] = np.ones((1, 2), int)
        >>> tuple(model(inputs).shape)
        (1, 2, 100)

    References:
        Vaswani et al. Attention Is All You Need. 2017. https://arxiv.org/abs/1706.03762
    """

    backbone_cls = TupeSeq2SeqBackbone
    preprocessor_cls = TupeSeq2SeqLMPreprocessor
    hidden_states_name = "decoder_sequence_output"

    def __init__(self, backbone, preprocessor=None, **kwargs):
        check_backbone(backbone)
        check_preprocessor(preprocessor, backbone)
        # === Functional graph ===
        inputs = backbone.input
        hidden_states = backbone(inputs)[self.hidden_states_name]
        logits = backbone.token_embedding(hidden_states, reverse=True)
        outputs = ops.cast(logits, at_least_float32(backbone.compute_dtype))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        # === Config ===
        self.backbone = backbone
        self.preprocessor = preprocessor

    @classmethod
    def _config_parts(cls):
        return {**super()._config_parts(), "backbone": TupeSeq2SeqBackbone}

    @property
    def parts(self):
        """The models whose weights have names of their own: `encoder` and `decoder`."""
        return {"encoder": self.backbone.encoder, "decoder": self.backbone.decoder}

    def compile(self, optimizer="auto", loss="auto", *, sampler="greedy", **kwargs):
        super().compile(optimizer, loss, sampler=sampler, **kwargs)

    # Generation

    def generate(self, inputs, max_length=None, stop_token_ids="auto", strip_prompt=False):
        """Returns the targets that the model writes to sources.

        The encoder runs once; the keys and values of both attentions are kept, whatever the
        position method. The first call for shapes of the inputs compiles.

        Args:
            inputs: string, batch of strings, or a dictionary of `encoder_text` and `decoder_text`,
                with which targets begin; or a `tf.data.Dataset` of batches. Without a preprocessor
                a dictionary as the backbone takes it, where `decoder_padding_mask` is 1 for the
                tokens that a target begins with, on the left, at least one.
            max_length: tokens of a target, special ones included. Defaults to the preprocessor's
                `decoder_sequence_length`; without a preprocessor it is the length of the inputs.
            stop_token_ids: tokens with which a target ends: `"auto"` for the tokenizer's end token,
                a list of ids, or `None` to fill `max_length` always.
            strip_prompt: must be `False`: targets are returned whole.

        Returns:
            List of strings, or a string for one; without a preprocessor a dictionary of
            `decoder_token_ids` and `decoder_padding_mask`, 1 = token.

        Raises:
            ValueError: before anything is generated, if `max_length` is above
                `max_sequence_length` for a method with a table, or not positive, a source is empty
                or too long, or a target begins with nothing or has no room.
            TypeError: for a source that is not text, or ids that are no integers.
        """
        check_sources(self, inputs, max_length, strip_prompt)
        if isinstance(inputs, dict):
            inputs = dict(inputs)  # KerasHub changes it
        return super().generate(inputs, max_length, stop_token_ids)

    def make_generate_function(self):
        if self.generate_function is not None:
            return self.generate_function
        check_position_terms(self.backbone.decoder_trunk.config)
        whole = super().make_generate_function()

        def from_beginning(inputs, stop_token_ids=None):
            columns = first_columns(inputs["decoder_padding_mask"])
            first = inputs["decoder_token_ids"][:, :columns]
            return whole({**inputs, "beginning": first}, stop_token_ids=stop_token_ids)

        self.generate_function = from_beginning
        return self.generate_function

    def generate_step(self, inputs, stop_token_ids=None):
        """Returns the targets of a batch: `decoder_token_ids` and `decoder_padding_mask`.

        Args:
            inputs: dictionary, as the backbone takes it, with known lengths, and, on request,
                `beginning`: the first columns of `decoder_token_ids`, at least as many as the
                shortest beginning has tokens, but for one. Defaults to all columns.
            stop_token_ids: list of ids with which a target ends, or `None`.
        """
        return self.generated(inputs, stop_token_ids, self.sampler)

    def generated(self, inputs, stop_token_ids, sampler, max_length=None):
        """As `generate_step`, with a sampler of its own.

        Args:
            inputs, stop_token_ids: as of `generate_step`.
            sampler: a `keras_hub.samplers.Sampler`.
            max_length: columns of the rows that are written and returned, a scalar tensor.
                Defaults to all.
        """
        steps, rows = self._prepared(inputs)
        if max_length is not None:
            rows = (*(x[:, :max_length] for x in rows[:2]), rows[2])
        token_ids, mask = written_rows(
            self,
            steps,
            rows,
            stop_token_ids,
            sampler,
            self._encoded(inputs),
        )
        return {"decoder_token_ids": token_ids, "decoder_padding_mask": mask}

    def _prepared(self, inputs):
        """Returns the steps of the decoder, and the rows that they complete."""
        token_ids = ops.cast(inputs["decoder_token_ids"], "int32")
        is_prompt = ops.cast(inputs["decoder_padding_mask"], "bool")
        steps = Steps(self.backbone.decoder_trunk, token_ids.shape[1])
        return steps, (token_ids, is_prompt, inputs.get("beginning", token_ids))

    def _encoded(self, inputs):
        """Returns what the blocks of the decoder take of the encoder, for each layer."""
        mask = ops.cast(inputs["encoder_padding_mask"], "int32")
        ids = ops.cast(inputs["encoder_token_ids"], "int32")
        states = self.backbone.encoder({"token_ids": ids, "padding_mask": mask}, training=False)
        return [
            {"encoded": (block.cross_attention.keys_and_values(states), mask)}
            for block in self.backbone.decoder_blocks
        ]

    # Scores

    def _scored(self, inputs):
        if self.preprocessor is not None:
            return self.preprocessor.whole_pairs(inputs)
        x = {name: ops.convert_to_tensor(value) for name, value in inputs.items()}
        ids, mask = x["decoder_token_ids"], x["decoder_padding_mask"]
        x |= {"decoder_token_ids": ids[:, :-1], "decoder_padding_mask": mask[:, :-1]}
        return x, ids[:, 1:], ops.cast(mask[:, 1:], "float32")
