"""Causal language modeling, and text that goes on."""

import functools

import keras
import keras_hub
from keras import ops

from keras_tupe.layers._parts import at_least_float32, starts
from keras_tupe.layers._tied_products import tied_products
from keras_tupe.models._cached_backbone import CachedBackbone
from keras_tupe.models._compiled_method import compiled_method
from keras_tupe.models._inputs import check_preprocessor
from keras_tupe.models._loss_in_chunks import LossInChunks
from keras_tupe.models._prompts import (
    beginning,
    check_causal,
    check_position_terms,
    check_preset,
    check_prompts,
)
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.tupe_causal_lm_preprocessor import TupeCausalLMPreprocessor


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeCausalLM(LossInChunks, TupeTask, keras_hub.models.CausalLM):
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

    def __init__(self, backbone, preprocessor=None, **kwargs):
        check_causal(backbone)
        check_preprocessor(preprocessor, backbone)
        # === Functional graph ===
        inputs = backbone.input
        hidden_states = backbone(inputs)["sequence_output"]
        logits = backbone.token_embedding(hidden_states, reverse=True)
        outputs = ops.cast(logits, at_least_float32(backbone.compute_dtype))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        # === Config ===
        self.backbone = backbone
        self.preprocessor = preprocessor

    @classmethod
    def from_preset(cls, preset, *args, **kwargs):
        check_preset(preset, cls)
        return super().from_preset(preset, *args, **kwargs)

    def _trained(self, inputs):
        return self.logits(self.backbone(inputs, training=True)["sequence_output"])

    def logits(self, hidden_states):
        """Returns the logits of the next tokens, `(..., vocabulary_size)`, in at least float32.

        Args:
            hidden_states: the backbone's `sequence_output`, or some of it, `(..., hidden_dim)`.
        """
        found = tied_products(hidden_states, self.backbone.token_embedding)
        return ops.cast(found, at_least_float32(self.backbone.compute_dtype))

    def compile(self, optimizer="auto", loss="auto", *, sampler="top_k", **kwargs):
        if loss == "auto":
            loss = keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        super().compile(optimizer=optimizer, loss=loss, sampler=sampler, **kwargs)
        self._score_function = None

    def _num_labels(self, length):
        return self.backbone.vocabulary_size

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
        check_prompts(self, inputs, max_length)
        return super().generate(inputs, max_length, stop_token_ids, strip_prompt)

    def make_generate_function(self):
        """Returns the compiled function: (inputs, stop_token_ids) -> what `generate_step` returns.

        It puts what comes before the first new token into the inputs, rounded up so that prompts
        of about one length share one compilation.
        """
        if self.generate_function is not None:
            return self.generate_function
        check_position_terms(self.backbone)
        whole = super().make_generate_function()

        def from_beginning(inputs, stop_token_ids=None):
            first = beginning(inputs, self.backbone)
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
        length = token_ids.shape[1]
        steps = CachedBackbone(self.backbone, length)
        first = ops.cast(inputs.get("beginning", token_ids), "int32")
        hidden_states, caches = steps.prefill(first)
        sides = ((0, 0), (0, length - first.shape[1]), (0, 0))
        by_batch = _swapped if _changes_rows(sampler) else list

        def next(prompt, caches, index):
            batch = ops.shape(prompt)[0]
            last = ops.slice(prompt, starts(0, index - 1), (batch, 1))
            hidden_states, caches = steps.step(last, by_batch(caches), index - 1)
            hidden_states = hidden_states[:, 0]
            return self.logits(hidden_states), hidden_states, by_batch(caches)

        token_ids = sampler(
            next=next,
            prompt=_without_ends(token_ids, is_prompt, stop_token_ids),
            cache=by_batch(caches),
            index=ops.min(ops.sum(ops.cast(is_prompt, "int32"), axis=-1)),
            mask=is_prompt,
            stop_token_ids=stop_token_ids,
            hidden_states=ops.pad(hidden_states, sides),
            model=self,
        )
        return {"token_ids": token_ids, "padding_mask": _kept(token_ids, is_prompt, stop_token_ids)}

    # Scores

    def score(self, inputs):
        """Returns the log-probability of each token of texts, given those before it.

        Equation: with the logits above,

            log p(token_{i+1} | token_0 .. token_i) = logits[i, token_{i+1}] - log sum_w
                                                      exp logits[i, w]

        The sum over a row is the log-probability of the text; that over n tokens gives its
        perplexity, exp(-sum / n).

        Args:
            inputs: string or batch of strings; without a preprocessor the dictionary of inputs.

        Returns:
            Dictionary of NumPy arrays: `token_ids`, `padding_mask` (1 = token that is predicted)
            and `log_probabilities`, in nats, 0 where there is no such token; all
            `(batch, count)`. The first is that of the second token of a row: with a preprocessor
            that is the first of the text, and the end token is the last.

        Raises:
            ValueError: if a text is longer than the preprocessor's `sequence_length`.
        """
        x, labels, weights = self._scored(inputs)
        if self._score_function is None:
            self._score_function = compiled_method(self, self.log_probabilities)
        scores = self._score_function(x, labels, weights)
        found = {"token_ids": labels, "padding_mask": weights, "log_probabilities": scores}
        found = {name: ops.convert_to_numpy(value) for name, value in found.items()}
        return {**found, "padding_mask": found["padding_mask"].astype("int32")}

    def _scored(self, inputs):
        if self.preprocessor is None:
            ids, mask = (ops.convert_to_tensor(inputs[x]) for x in ("token_ids", "padding_mask"))
            x = {"token_ids": ids[:, :-1], "padding_mask": mask[:, :-1]}
            return x, ids[:, 1:], ops.cast(mask[:, 1:], "float32")
        return self.preprocessor.whole_texts([inputs] if isinstance(inputs, str) else inputs)

    def log_probabilities(self, inputs, labels, weights):
        """Returns the log-probability of each label times its weight, `(batch, length)`.

        Args:
            inputs: dictionary of `token_ids` and `padding_mask`, integers `(batch, length)`.
            labels: the token after each, integers of that shape.
            weights: numbers of that shape.
        """
        logits = self(inputs, training=False)
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return -losses * ops.cast(weights, losses.dtype)


def _changes_rows(sampler):
    """Whether a sampler moves rows of caches, whose first axis must then be the batch."""
    own = type(sampler).__call__ is not keras_hub.samplers.Sampler.__call__
    return own and not getattr(sampler, "keeps_rows", False)


def _swapped(caches):
    return [tuple(ops.swapaxes(part, 0, 1) for part in pair) for pair in caches]


def _without_ends(token_ids, is_prompt, stop_token_ids):
    """Returns rows whose padding is none of the tokens with which a text ends.

    GPT-2 pads with its end token, and a sampler would take that for the end of the text.
    """
    if stop_token_ids is None:
        return token_ids
    other = min(set(range(len(stop_token_ids) + 1)) - set(map(int, stop_token_ids)))
    return ops.where(is_prompt, token_ids, other)


def _kept(token_ids, is_prompt, stop_token_ids):
    """Returns which tokens belong to a text: all up to the first new one with which it ends."""
    if stop_token_ids is None:
        return ops.ones_like(is_prompt)
    is_end = functools.reduce(ops.logical_or, [ops.equal(token_ids, x) for x in stop_token_ids])
    is_end = ops.cast(ops.logical_and(is_end, ops.logical_not(is_prompt)), "int32")
    return ops.equal(ops.cumsum(is_end, axis=-1) - is_end, 0)
