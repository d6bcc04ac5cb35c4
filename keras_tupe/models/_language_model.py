"""What every language model with a tied token embedding does: logits, its loss, scores of texts."""

import keras
from keras import ops

from keras_tupe.layers._parts import at_least_float32
from keras_tupe.models._compiled_method import compiled_method
from keras_tupe.models._loss_in_chunks import LossInChunks
from keras_tupe.trunk.inputs import check_inputs, check_token_ids


class LanguageModel(LossInChunks):
    """First parent of a task that predicts the next token by the tied token embedding.

    Attributes:
        hidden_states_name: the backbone's output that logits are made of.
    """

    def _trained(self, inputs):
        return self.logits(self.backbone(inputs, training=True)[self.hidden_states_name])

    def logits(self, hidden_states):
        """Returns the logits of the next tokens, `(..., vocabulary_size)`, in at least float32.

        Args:
            hidden_states: the backbone's output for each token, or for some, `(..., hidden_dim)`.
        """
        found = self.backbone.token_embedding(hidden_states, reverse=True)
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
            ValueError: if a text is longer than the preprocessor's `sequence_length`; without a
                preprocessor as a call.
            TypeError: for ids that are no integers.
        """
        if self.preprocessor is None:
            if isinstance(inputs, dict):
                inputs = {name: ops.convert_to_tensor(value) for name, value in inputs.items()}
            check_inputs(inputs, [tensor.name for tensor in self.backbone.inputs])
            check_token_ids(inputs, self.backbone.vocabulary_size)
        x, labels, weights = self._scored(inputs)
        if self._score_function is None:
            self._score_function = compiled_method(self, self.log_probabilities)
        scores = self._score_function(x, labels, weights)
        found = {"token_ids": labels, "padding_mask": weights, "log_probabilities": scores}
        found = {name: ops.convert_to_numpy(value) for name, value in found.items()}
        return {**found, "padding_mask": found["padding_mask"].astype("int32")}

    def log_probabilities(self, inputs, labels, weights):
        """Returns the log-probability of each label times its weight, `(batch, length)`.

        Args:
            inputs: dictionary of `token_ids` and `padding_mask`, integers `(batch, length)`.
            labels: the token after each, integers of that shape.
            weights: numbers of that shape.
        """
        losses = self.token_losses(inputs, labels)
        return -losses * ops.cast(weights, losses.dtype)
