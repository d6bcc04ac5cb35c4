"""What every export of a model that writes has: samplers, and answers of texts and of scores."""

import keras_hub
import tensorflow as tf

from keras_tupe.export._text_functions import assertion
from keras_tupe.layers._checks import check_positive_integers


def check_top_k(top_k, vocabulary_size):
    """Raises `ValueError` if there are not so many tokens to draw among."""
    check_positive_integers(top_k=top_k)
    if top_k > vocabulary_size:
        raise ValueError(
            f"`top_k` must not exceed the size of the vocabulary, {vocabulary_size}. "
            f"Received: top_k={top_k}"
        )


def tests_of(*problems):
    """Returns an op for each problem, which fails with its sentence.

    Args:
        *problems: pairs of booleans `(batch,)`, or one boolean, and a sentence.
    """
    return [assertion(~tf.reduce_any(is_wrong), sentence) for is_wrong, sentence in problems]


def written_texts(tokenizer, token_ids, padding_mask):
    """Returns the outputs of a signature that writes: `text` and `num_tokens`, `(batch,)`.

    Args:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        token_ids: int32 `(batch, length)`.
        padding_mask: of the same shape, 1 = token of a text.
    """
    kept = tf.ragged.boolean_mask(token_ids, padding_mask)
    return {
        "text": tokenizer.detokenize(kept),
        "num_tokens": tf.cast(kept.row_lengths(), tf.int32),
    }


def scored_tokens(tokenizer, log_probabilities, labels, weights):
    """Returns the outputs of the signature `score`.

    Args:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        log_probabilities: of each label, times its weight, `(batch, length)`.
        labels: integers of that shape.
        weights: int32 of that shape, 1 = token that is predicted.
    """
    found = tf.cast(log_probabilities, tf.float32)
    return {
        "log_probability": tf.reduce_sum(found, axis=1),
        "num_tokens": tf.reduce_sum(weights, axis=1),
        "log_probabilities": found,
        "tokens": tf.where(weights > 0, tf.gather(tf.constant(tokenizer.pieces), labels), ""),
    }


def seeded_top_k(k, temperature, seed):
    """Returns a `SeededTopK` that fails with a sentence where the temperature is not above 0.

    Args:
        k, temperature, seed: as of `SeededTopK`.
    """
    with tf.control_dependencies([assertion(temperature > 0, "`temperature` must be above 0")]):
        return SeededTopK(k, seed, tf.identity(temperature))


class SeededTopK(keras_hub.samplers.Sampler):
    """Draws one of the k likeliest tokens, by a seed and the position alone.

    KerasHub's `TopKSampler` has a state, which requests to a server would share.

    Args:
        k: how many tokens.
        seed: int32 scalar tensor.
        temperature: float32 scalar tensor, by which logits are divided.
    """

    keeps_rows = True

    def __init__(self, k, seed, temperature):
        super().__init__(temperature=temperature)
        self.k, self.seed = k, seed

    def __call__(self, next, **kwargs):
        def with_index(prompt, cache, index):
            self._index = index
            return next(prompt, cache, index)

        return super().__call__(with_index, **kwargs)

    def get_next_token(self, probabilities):
        best = tf.math.top_k(probabilities, k=self.k)
        drawn = tf.random.stateless_categorical(
            tf.math.log(best.values), 1, seed=tf.stack([self.seed, self._index]), dtype=tf.int32
        )
        return tf.gather(best.indices, drawn, batch_dims=1)[:, 0]
