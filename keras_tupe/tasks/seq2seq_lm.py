"""From one text to another."""

import keras
import keras_hub
from keras import ops

from keras_tupe.models.seq2seq.backbone import SIDES, TupeSeq2SeqBackbone
from keras_tupe.models.seq2seq.preprocessor import TupeSeq2SeqLMPreprocessor
from keras_tupe.tasks._language_model import (
    LanguageModel,
    check_position_terms,
    check_written,
    first_columns,
)
from keras_tupe.tasks._task import TupeTask, check_lengths, check_vocabulary
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
    reads = ("decoder_sequence_output",)
    examples = (
        {"source": "He was glad to see her.", "target": "He was glad."},
        {"source": "In the winter the river is cold.", "target": "The river is cold."},
    )

    @classmethod
    def check_backbone(cls, backbone):
        if not isinstance(backbone, TupeSeq2SeqBackbone):
            raise TypeError(
                "A model of pairs needs a `TupeSeq2SeqBackbone`. Received: "
                f"{type(backbone).__name__}"
            )

    @classmethod
    def check_preprocessor(cls, preprocessor, backbone):
        if preprocessor is None:
            return
        names = [f"{side}_sequence_length" for side in SIDES]
        if not all(hasattr(preprocessor, name) for name in names):
            raise TypeError(
                "A model of pairs needs a `TupeSeq2SeqLMPreprocessor`, whose rows are pairs too. "
                f"Received: {type(preprocessor).__name__}"
            )
        check_lengths(backbone, **{name: getattr(preprocessor, name) for name in names})
        tokenizer = preprocessor.tokenizer  # no text has the mask, which may be the last piece
        if tokenizer.has_vocabulary:
            is_mask = tokenizer.mask_token_id == tokenizer.vocabulary_size() - 1
            check_vocabulary(tokenizer, backbone, spared=int(is_mask))

    @classmethod
    def example(cls, row):
        """Returns the source, in a tuple, and the target of a row of a table.

        Args:
            row: dictionary with `source` and `target`.
        """
        return (row["source"],), row["target"]

    def labelled(self, texts, labels):
        sources = [text for (text,) in texts]
        found = self.preprocessor({"encoder_text": sources, "decoder_text": list(labels)})
        return [keras.tree.map_structure(ops.convert_to_numpy, part) for part in found]

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
        if strip_prompt:
            raise ValueError(
                "Targets are returned whole, with what they begin with. Leave `strip_prompt` out. "
                f"Received: strip_prompt={strip_prompt!r}"
            )
        if isinstance(inputs, list | tuple) and not inputs:
            raise ValueError("There must be at least one source. Received: no text")
        arrays = check_written(self, inputs, max_length, "decoder_")
        if arrays is not None:
            self._check_sources(arrays["encoder_padding_mask"].astype(bool))
        if isinstance(inputs, dict):
            inputs = dict(inputs)  # KerasHub changes it
        return super().generate(inputs, max_length, stop_token_ids)

    def _check_sources(self, mask):
        backbone, length = self.backbone, mask.shape[1]
        if backbone.has_length_limit and length > backbone.max_sequence_length:
            raise ValueError(
                f"The position tables of {backbone.position!r} end at max_sequence_length="
                f"{backbone.max_sequence_length} tokens of a source. Shorten the sources. "
                f"Received: a length of {length}"
            )
        if not mask.any(axis=1).all():
            raise ValueError(
                "A source must have at least one token. Received: no token in row "
                f"{int(mask.any(axis=1).argmin())} of `encoder_padding_mask`"
            )

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
        encoded = self._encoded(inputs)
        token_ids, mask = written_rows(self, steps, rows, stop_token_ids, sampler, encoded)
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


TASK = TupeSeq2SeqLM
