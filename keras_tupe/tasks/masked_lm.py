"""Masked language modeling."""

import keras
import keras_hub

from keras_tupe.layers import MaskedLMHead
from keras_tupe.models.tupe_masked_lm_preprocessor import TupeMaskedLMPreprocessor
from keras_tupe.tasks._task import TupeTask, normal, token_crossentropy
from keras_tupe.trunk.config import ACTIVATION, setting


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeMaskedLM(TupeTask, keras_hub.models.MaskedLM):
    """Pre-training model: the encoder and a head that predicts masked tokens.

    With a preprocessor `fit` takes raw strings and masks them anew in every epoch; without one
    it takes the dictionary below, labels and weights.

    Equation: the head's, see `MaskedLMHead`. Default loss, over the slots m of a batch,

        loss = sum_m weight_m * cross_entropy(label_m, logits_m) / sum_m weight_m

    that is the mean over masked tokens. `keras_hub.models.MaskedLM` divides by the number of
    slots instead, used or not.

    Args:
        backbone: a `TupeBackbone`.
        preprocessor: optional `TupeMaskedLMPreprocessor`.
        head_activation: of the head: `"gelu"`, the exact one, or `"gelu_approximate"`, by tanh, as
            in ALBERT. Defaults to `"gelu"`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: the backbone's, and `mask_positions` `(batch, predictions)`, integers in
            [0, length).

    Returns:
        Logits `(batch, predictions, vocabulary_size)`, in at least float32.

    Masking: as in the backbone.

    Raises:
        ValueError, TypeError: as the backbone, and if the preprocessor does not fit it.

    Example:
        >>> import numpy as np
        >>> model = TupeMaskedLM(keras_tupe.TupeBackbone(100, 1, 2, 16, 32))
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> where = {"padding_mask": np.ones_like(ids), "mask_positions": np.array([[1]])}
        >>> tuple(model({"token_ids": ids, **where}).shape)
        (1, 1, 100)

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """

    preprocessor_cls = TupeMaskedLMPreprocessor
    options = {"head_activation": setting(ACTIVATION, "Of the head.", "gelu")}
    more_inputs, positions_input = {"mask_positions": "int32"}, "mask_positions"
    signature = "fill_mask"
    scores = ("accuracy",)
    examples = (
        {"text": "The river flows into the [MASK]."},
        {"text": "She opened the [MASK] and went into the room."},
        {"text": "If the file does not [MASK], an error is raised."},
    )

    head = property(lambda self: self.head_parts["tokens"])

    def head_layers(self, backbone, head_activation="gelu"):
        return {
            "tokens": MaskedLMHead(
                backbone.token_embedding,
                layer_norm_epsilon=backbone.layer_norm_epsilon,
                kernel_initializer=normal(backbone),
                activation=head_activation,
                dtype=backbone.dtype_policy,
                name="mlm_head",
            )
        }

    def answer(self, head, encoded, inputs):
        where = inputs["mask_positions"]
        return head["tokens"](encoded["sequence_output"], mask_positions=where)

    def default_loss(self):
        return token_crossentropy()

    def default_metrics(self):
        return [keras.metrics.SparseCategoricalAccuracy()]

    def num_labels(self, length):
        return self.backbone.vocabulary_size

    def served(self, answer):
        return {"mlm_logits": keras.ops.cast(answer, "float32")}

    @classmethod
    def say(cls, texts, answers):
        """Returns the likeliest pieces for the first blank of each text.

        Args:
            texts: list with a tuple of one string for each row.
            answers: `tokens` and `probabilities` `(rows, count)`, best first; `num_masks`
                `(rows,)`.
        """
        told = []
        for number in range(len(texts)):
            if answers["num_masks"][number] == 0:
                told.append(["no blank that the model reads: write the vocabulary's mask, early"])
                continue
            pieces, shares = answers["tokens"][number], answers["probabilities"][number]
            ranked = zip(pieces, shares, strict=True)
            told.append([", ".join(f"{piece.decode()} {share:.0%}" for piece, share in ranked)])
        return told


TASK = TupeMaskedLM
