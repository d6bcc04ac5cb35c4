"""A model of pairs of texts with its tokenizer: sources in, targets out."""

import keras_hub
import tensorflow as tf

from keras_tupe.export._checks import check_length, check_weights
from keras_tupe.export._text_functions import save_text_functions, text_signature
from keras_tupe.export._writing import (
    check_top_k,
    scored_tokens,
    seeded_top_k,
    tests_of,
    written_texts,
)
from keras_tupe.layers._tracing import tracing_for
from keras_tupe.models import BeamSearch, TupeSeq2SeqLM, TupeSeq2SeqLMPreprocessor
from keras_tupe.tasks._language_model import check_position_terms
from keras_tupe.tokenizers import pack_pairs


def export_seq2seq(model, preprocessor, path, max_length=None, sampler=None, top_k=40):
    """Writes a model of pairs that takes strings, as a SavedModel for serving.

    A program that loads it must import `tensorflow_text` first, for the tokenizer's op. The encoder
    runs once for a batch; the loop over the target's tokens, with the keys and values of both
    attentions kept, is inside of the graph. Signatures, each with the input `text`, strings
    `(batch,)`, the sources:

    - `serving_default` -> `text`, strings `(batch,)`: the targets, up to the end token or the
      length of the export; and `num_tokens` int32 `(batch,)`, special ones included.
    - `generate`: the same with the input `max_length` beside, an int32 scalar: tokens of a target,
      special ones included, at most as many as the export has.
    - `generate_top_k`: the same with one of the `top_k` likeliest tokens, drawn by their
      probabilities; inputs `max_length`, `temperature` (a float32 scalar above 0: the logits are
      divided by it) and `seed` (an int32 scalar: the same seed gives the same targets for the same
      batch) beside.
    - `score`: with the input `target` beside, strings `(batch,)` -> `log_probability` float32
      `(batch,)`, in nats, of whole targets with their end token, given their sources; `num_tokens`
      int32 `(batch,)` that this is a sum over; `log_probabilities` float32 `(batch, length)` of
      each of them, and their `tokens`, strings, empty behind the last.

    A source without a token or longer than the preprocessor's rows, a target to score that is
    longer than the export's, and a `max_length` that has no room for a new token or is above the
    export's are errors of their batch, unless XLA compiles the graph.

    Args:
        model: a `TupeSeq2SeqLM`.
        preprocessor: its `TupeSeq2SeqLMPreprocessor`, whose settings for rows are kept.
        path: folder to make. It may exist if it is empty.
        max_length: tokens of a target at most. Defaults to the preprocessor's
            `decoder_sequence_length`.
        sampler: what `serving_default` and `generate` write by: `"greedy"`, or a `BeamSearch`.
            Defaults to what the model was compiled with, which is greedy by default.
        top_k: among how many tokens `generate_top_k` draws; at most the size of the vocabulary.

    Raises:
        TypeError: if `model` or `preprocessor` is something else.
        ValueError: if the preprocessor does not fit the model, `max_length` is above the end of a
            position table or has no room for a new token, the sampler draws, or as
            `export_encoder`. Nothing is written then.
    """
    functions = seq2seq_functions(model, preprocessor, max_length, sampler, top_k)
    save_text_functions(functions, model, preprocessor.tokenizer, path)


def seq2seq_functions(model, preprocessor, max_length=None, sampler=None, top_k=40):
    """Returns what `export_seq2seq` makes signatures of, to be called in this process.

    Args:
        model, preprocessor, max_length, sampler, top_k: as of `export_seq2seq`.

    Returns:
        Dictionary of name -> `tf.function`, to be called with `text=` strings `(batch,)` and its
        other inputs.

    Raises:
        TypeError, ValueError: as `export_seq2seq`.
    """
    if not isinstance(model, TupeSeq2SeqLM):
        raise TypeError(f"`model` must be a `TupeSeq2SeqLM`. Received: model={model!r:.200}")
    if not isinstance(preprocessor, TupeSeq2SeqLMPreprocessor):
        raise TypeError(
            "`preprocessor` must be a `TupeSeq2SeqLMPreprocessor`, which knows the rows that the "
            "model was trained on; `TupeSeq2SeqLMPreprocessor(tokenizer)` makes one. Received: "
            f"preprocessor={preprocessor!r:.200}"
        )
    check_weights(model)
    model.check_preprocessor(preprocessor, model.backbone)
    max_length = preprocessor.decoder_sequence_length if max_length is None else max_length
    max_length = check_length(model.backbone, max_length)
    writer = _Writer(model, preprocessor, max_length, _sampler(model, sampler), top_k)
    if max_length < writer.fewest:
        raise ValueError(
            f"`max_length` must be at least {writer.fewest}: what targets begin with, and a token. "
            f"Received: max_length={max_length}"
        )
    check_position_terms(model.backbone.decoder_trunk.config)
    check_top_k(top_k, model.backbone.vocabulary_size)
    length = {"max_length": tf.int32}
    drawn = {**length, "temperature": tf.float32, "seed": tf.int32}
    return {
        "serving_default": text_signature(writer.serve),
        "generate": text_signature(writer.generate, **length),
        "generate_top_k": text_signature(writer.generate_top_k, **drawn),
        "score": text_signature(writer.score, "text", "target"),
    }


def _sampler(model, sampler):
    """Returns the sampler of an export, one without a state that requests would share."""
    found = model.sampler if sampler is None else keras_hub.samplers.get(sampler)
    if not isinstance(found, (keras_hub.samplers.GreedySampler, BeamSearch)):
        raise ValueError(
            "An export writes by `sampler='greedy'` or by a `BeamSearch`; its signature "
            "`generate_top_k` draws, by a seed. Pass one of the two. Received: "
            f"{'the compiled' if sampler is None else 'a'} {type(found).__name__}"
        )
    return found


class _Writer:
    """The functions behind the signatures."""

    def __init__(self, model, preprocessor, length, sampler, top_k):
        self.model, self.tokenizer = model, preprocessor.tokenizer.op
        self.starts_with_end = bool(preprocessor.decoder_starts_with_end)
        self.source_length, self.length = preprocessor.encoder_sequence_length, length
        self.sampler, self.top_k = sampler, top_k

    @property
    def fewest(self):
        """Tokens of the shortest target: what all begin with, and one."""
        return 2 + self.starts_with_end

    def serve(self, text):
        return self._written(text, self.sampler)

    def generate(self, text, max_length):
        return self._written(text, self.sampler, max_length)

    def generate_top_k(self, text, max_length, temperature, seed):
        return self._written(text, seeded_top_k(self.top_k, temperature, seed), max_length)

    def _written(self, text, sampler, max_length=None):
        tests = self._source_tests(text)
        if max_length is not None:
            fits = (max_length >= self.fewest) & (max_length <= self.length)
            sentence = (
                f"`max_length` must be from {self.fewest} to {self.length}, which this model was "
                "exported with. It counts the tokens of a target, special ones included."
            )
            tests += tests_of((~fits, sentence))
        with tf.control_dependencies(tests), tracing_for("saved"):
            rows = pack_pairs.generation_inputs(self.tokenizer, text, **self._rows())
            rows = _narrowed(rows, "encoder")
            rows["beginning"] = rows["decoder_token_ids"][:, : self.fewest - 1]
            found = self.model.generated(rows, [self.tokenizer.end_id], sampler, max_length)
        return written_texts(
            self.tokenizer, found["decoder_token_ids"], found["decoder_padding_mask"]
        )

    def score(self, text, target):
        room = self.length - self.starts_with_end
        tests = tests_of(
            (
                tf.not_equal(tf.size(text), tf.size(target)),
                "There must be a target for each source, in `target`.",
            ),
            *pack_pairs.target_problems(self.tokenizer, target, room),
        )
        with tf.control_dependencies(self._source_tests(text) + tests):
            rows, labels, weights = pack_pairs.pair_inputs(
                self.tokenizer, text, target, **self._rows()
            )
            rows = _narrowed(_narrowed(rows, "encoder"), "decoder")
            width = tf.shape(rows["decoder_token_ids"])[1]
            labels, weights = labels[:, :width], tf.cast(weights[:, :width], tf.int32)
        with tracing_for("saved"):
            found = self.model.log_probabilities(rows, labels, weights)
        return scored_tokens(self.tokenizer, found, labels, weights)

    def _rows(self):
        return {
            "source_length": self.source_length,
            "target_length": self.length,
            "starts_with_end": self.starts_with_end,
        }

    def _source_tests(self, text):
        return tests_of(*pack_pairs.source_problems(self.tokenizer, text, self.source_length))


def _narrowed(rows, side):
    """Returns rows without the columns of a side that no text of the batch reaches."""
    mask = rows[f"{side}_padding_mask"]
    width = tf.maximum(tf.reduce_max(tf.reduce_sum(mask, axis=1)), 1)  # of an empty batch too
    names = (f"{side}_token_ids", f"{side}_padding_mask")
    return {**rows, **{name: rows[name][:, :width] for name in names}}
