"""A causal language model with its tokenizer: text in, more text out."""

import keras_hub
import tensorflow as tf

from keras_tupe.export._checks import refuse_pairs
from keras_tupe.export._text_functions import checked_parts, save_text_functions, text_signature
from keras_tupe.export._writing import (
    check_top_k,
    scored_tokens,
    seeded_top_k,
    tests_of,
    written_texts,
)
from keras_tupe.layers._tracing import tracing_for
from keras_tupe.models import TupeCausalLM
from keras_tupe.tasks._language_model import check_position_terms
from keras_tupe.tokenizers.pack_text import framed, pack_text, prompt_problems


def export_generator(model, tokenizer, path, max_length=None, top_k=40):
    """Writes a causal language model that takes strings, as a SavedModel for serving.

    A program that loads it must import `tensorflow_text` first, for the tokenizer's op. The loop
    over tokens, with the keys and values of earlier ones kept, is inside of the graph. Signatures,
    each with the input `text`, strings `(batch,)`:

    - `generate`, and the same as `serving_default` -> `text`, strings `(batch,)`: the prompts with
      the likeliest next token again and again, up to the end token or `max_length` tokens; and
      `num_tokens` int32 `(batch,)`, special ones included.
    - `generate_top_k`: the same with one of the `top_k` likeliest tokens, drawn by their
      probabilities; inputs `temperature` (a float32 scalar above 0: the logits are divided by it)
      and `seed` (an int32 scalar: the same seed gives the same text for the same batch) beside.
    - `score` -> `log_probability` float32 `(batch,)`, in nats, of whole texts with their end token;
      `num_tokens` int32 `(batch,)` that this is a sum over; `log_probabilities` float32
      `(batch, length)` of each of them, and their `tokens`, strings, empty behind the last.

    An empty prompt, one without room for another token, and a text to score of more than
    `max_length` tokens are errors of their batch, unless XLA compiles the graph.

    Args:
        model: a `TupeCausalLM`.
        tokenizer: a tokenizer of `keras_tupe.tokenizers`, a `TupeTokenizer`, or a
            `TupeCausalLMPreprocessor`, whose settings for rows are then kept.
        path: folder to make. It may exist if it is empty.
        max_length: tokens of a whole text, those of the prompt included. Defaults to the
            preprocessor's `sequence_length`, or the model's `max_sequence_length`.
        top_k: among how many tokens `generate_top_k` draws; at most the size of the vocabulary.

    Raises:
        TypeError: if `model` or `tokenizer` is something else.
        ValueError: if the vocabularies of model and tokenizer differ in size, or as
            `export_encoder`. Nothing is written then.
    """
    functions = generator_functions(model, tokenizer, max_length, top_k)
    save_text_functions(functions, model, tokenizer, path)


def generator_functions(model, tokenizer, max_length=None, top_k=40):
    """Returns what `export_generator` makes signatures of, to be called in this process.

    Args:
        model, tokenizer, max_length, top_k: as of `export_generator`.

    Returns:
        Dictionary of name -> `tf.function`, to be called with `text=` strings `(batch,)` and its
        other inputs.

    Raises:
        TypeError, ValueError: as `export_generator`.
    """
    refuse_pairs(model)
    if not isinstance(model, TupeCausalLM):
        raise TypeError(f"`model` must be a `TupeCausalLM`. Received: model={model!r:.200}")
    backbone, packing, length = checked_parts(model, tokenizer, max_length)
    check_position_terms(backbone.config)
    check_top_k(top_k, backbone.vocabulary_size)
    generator = _Generator(model, packing, length, top_k)
    drawn = {"temperature": tf.float32, "seed": tf.int32}
    return {
        "serving_default": text_signature(generator.generate),
        "generate": text_signature(generator.generate),
        "generate_top_k": text_signature(generator.generate_top_k, **drawn),
        "score": text_signature(generator.score),
    }


class _Generator:
    """The functions behind the signatures."""

    def __init__(self, model, packing, length, top_k):
        self.model, self.tokenizer = model, packing.tokenizer
        self.frame = (packing.add_start_token, packing.add_end_token)
        self.length, self.top_k = length, top_k

    def generate(self, text):
        return self._generated(text, keras_hub.samplers.GreedySampler())

    def generate_top_k(self, text, temperature, seed):
        return self._generated(text, seeded_top_k(self.top_k, temperature, seed))

    def _generated(self, text, sampler):
        start, _ = self.frame
        ids = self.tokenizer.tokenize(text)
        lengths = framed(self.tokenizer, ids, start, False).row_lengths()
        tests = tests_of(*prompt_problems(ids, lengths, self.length))
        with tf.control_dependencies(tests), tracing_for("saved"):
            rows = pack_text(self.tokenizer, ids, self.length, start, False)
            rows = dict(zip(("token_ids", "padding_mask"), map(tf.identity, rows), strict=True))
            found = self.model.generated(rows, [self.tokenizer.end_id], sampler)
        return written_texts(self.tokenizer, found["token_ids"], found["padding_mask"])

    def score(self, text):
        rows = framed(self.tokenizer, self.tokenizer.tokenize(text), *self.frame)
        is_long = rows.row_lengths() > self.length
        sentence = f"A text to score must have at most {self.length} tokens, special ones included"
        with tf.control_dependencies(tests_of((is_long, sentence))):
            token_ids = rows.to_tensor(self.tokenizer.pad_id)
            mask = tf.ones_like(rows).to_tensor(0)
        inputs = {"token_ids": token_ids[:, :-1], "padding_mask": mask[:, :-1]}
        labels, weights = token_ids[:, 1:], mask[:, 1:]
        with tracing_for("saved"):
            found = self.model.log_probabilities(inputs, labels, weights)
        return scored_tokens(self.tokenizer, found, labels, weights)
