"""Causal language modeling, and text that goes on."""

import keras
import keras_hub
from keras import ops

from keras_tupe.models.tupe_causal_lm_preprocessor import TupeCausalLMPreprocessor
from keras_tupe.tasks._language_model import (
    FEWEST_COLUMNS,
    LanguageModel,
    check_causal,
    check_position_terms,
    check_preset,
    check_written,
    first_columns,
)
from keras_tupe.tasks._task import TupeTask
from keras_tupe.trunk.steps import Steps, written_rows


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeCausalLM(LanguageModel, TupeTask, keras_hub.models.CausalLM):
    """Language model that predicts each token from those before it, and writes text on.

    With a preprocessor `fit` takes raw strings, and `generate` takes prompts and returns texts;
    without one both take the dictionary below.

    Equation: with the hidden state x_i of token i, and the embedding E_w of token w

        logits[i, w] = x_i . E_w

    for the token at i + 1. There is no weight beside the backbone's. Default loss, over the
    positions i of a batch,

        loss = sum_i weight_i * cross_entropy(token_{i+1}, logits_i) / sum_i weight_i

    that is the mean over real tokens; `keras_hub.models.CausalLM` divides by their number and that
    of padded positions.

    Args:
        backbone: a `TupeBackbone` whose attention pattern is causal, such as
            `attention_pattern="causal"`, without segments.
        preprocessor: optional `TupeCausalLMPreprocessor`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: as the backbone's: `token_ids` and `padding_mask`.

    Returns:
        Logits `(batch, length, vocabulary_size)`, in at least float32.

    Masking: as in the backbone.

    Raises:
        ValueError, TypeError: as the backbone, and if it is not causal or has segments, or the
            preprocessor does not fit it.

    Notes:
        `compile(sampler=...)` says how the next token is drawn: `"greedy"`, `"top_k"`, `"top_p"`,
        `"random"`, `"beam"`, `"contrastive"` or a `keras_hub.samplers.Sampler`. A sampler that
        changes the order of rows, as beam search does, costs a copy of the caches per token.

    Example:
        >>> import numpy as np
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, attention_pattern="causal")
        >>> model = TupeCausalLM(backbone)
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> tuple(model({"token_ids": ids, "padding_mask": np.ones_like(ids)}).shape)
        (1, 4, 100)

    References:
        Radford et al. Language Models are Unsupervised Multitask Learners. 2019.
    """

    preprocessor_cls = TupeCausalLMPreprocessor

    examples = ({"text": "He was glad to see her."}, {"text": "In the winter the river is cold."})

    @classmethod
    def check_backbone(cls, backbone):
        check_causal(backbone)

    @classmethod
    def from_preset(cls, preset, *args, **kwargs):
        check_preset(preset, cls)
        return super().from_preset(preset, *args, **kwargs)

    # Generation

    def generate(self, inputs, max_length=None, stop_token_ids="auto", strip_prompt=False):
        """Returns prompts with what the model writes after them.

        The first call for a size of batch, a `max_length` and about a length of prompts compiles;
        the keys and values of earlier tokens are kept, whatever the position method.

        Args:
            inputs: string, batch of strings, or `tf.data.Dataset` of batches; without a
                preprocessor a dictionary of `token_ids` and `padding_mask`, integers
                `(batch, max_length)`, with the tokens of each prompt on the left.
            max_length: tokens of a whole text, those of the prompt and special ones included.
                Defaults to the preprocessor's `sequence_length`; without a preprocessor it is the
                length of the inputs.
            stop_token_ids: tokens with which a text ends: `"auto"` for the tokenizer's end token,
                a list of ids, or `None` to fill `max_length` always.
            strip_prompt: whether to return the new text alone. Defaults to `False`.

        Returns:
            List of strings, or a string for one; without a preprocessor a dictionary of `token_ids`
            and `padding_mask`, 1 = token.

        Raises:
            ValueError: before anything is generated, if `max_length` is above
                `max_sequence_length` for a method with a table, or not positive, a prompt has no
                token or no room after it, or tokens do not stand on the left.
            TypeError: for a prompt that is not text, or ids that are no integers.
        """
        check_written(self, inputs, max_length)
        return super().generate(inputs, max_length, stop_token_ids, strip_prompt)

    def make_generate_function(self):
        """Returns the compiled function: (inputs, stop_token_ids) -> what `generate_step` returns.

        It puts what comes before the first new token into the inputs, rounded up so that prompts
        of about one length share one compilation.
        """
        if self.generate_function is not None:
            return self.generate_function
        check_position_terms(self.backbone.config)
        whole = super().make_generate_function()

        def from_beginning(inputs, stop_token_ids=None):
            self.backbone.config.check_length(inputs["token_ids"].shape[1])
            fewest = max(FEWEST_COLUMNS, self.backbone.pattern_options.get("num_global", 0))
            columns = first_columns(inputs["padding_mask"], fewest)
            first = inputs["token_ids"][:, :columns]
            return whole({**inputs, "beginning": first}, stop_token_ids=stop_token_ids)

        self.generate_function = from_beginning
        return self.generate_function

    def generate_step(self, inputs, stop_token_ids=None):
        """Returns the texts of one batch: `token_ids` and `padding_mask`, `(batch, length)`.

        Args:
            inputs: dictionary of `token_ids` and `padding_mask`, `(batch, length)` with a known
                length, and, on request, `beginning`: the first columns of `token_ids`, at least as
                many as the shortest prompt has tokens. Defaults to all columns.
            stop_token_ids: list of ids with which a text ends, or `None`.
        """
        return self.generated(inputs, stop_token_ids, self.sampler)

    def generated(self, inputs, stop_token_ids, sampler):
        """As `generate_step`, with a sampler of its own.

        Args:
            inputs, stop_token_ids: as of `generate_step`.
            sampler: a `keras_hub.samplers.Sampler`.
        """
        token_ids = ops.cast(inputs["token_ids"], "int32")
        is_prompt = ops.cast(inputs["padding_mask"], "bool")
        steps = Steps(self.backbone.trunk, token_ids.shape[1])
        rows = token_ids, is_prompt, ops.cast(inputs.get("beginning", token_ids), "int32")
        token_ids, mask = written_rows(self, steps, rows, stop_token_ids, sampler)
        return {"token_ids": token_ids, "padding_mask": mask}

    # Scores

    def _scored(self, inputs):
        if self.preprocessor is None:
            ids, mask = (ops.convert_to_tensor(inputs[x]) for x in ("token_ids", "padding_mask"))
            x = {"token_ids": ids[:, :-1], "padding_mask": mask[:, :-1]}
            return x, ids[:, 1:], ops.cast(mask[:, 1:], "float32")
        return self.preprocessor.whole_texts([inputs] if isinstance(inputs, str) else inputs)


TASK = TupeCausalLM
