"""Which tokens of a text were replaced."""

import keras
import keras_hub

from keras_tupe.layers.discriminator_head import DiscriminatorHead
from keras_tupe.tasks._task import TupeTask, normal


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeTokenDiscriminator(TupeTask, keras_hub.models.Task):
    """ELECTRA's discriminator: the encoder and a head that says which tokens were replaced.

    It is what pre-training by `TupeReplacedTokenDetector` leaves, and its encoder is fine-tuned
    like any other: `TupeTextClassifier.from_preset(folder)`.

    Equation (Clark et al. 2020): the head's, see `DiscriminatorHead`.

    Args:
        backbone: a `TupeBackbone`.
        preprocessor: optional `TupeTextClassifierPreprocessor`; with it `predict` takes raw
            strings.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        Logits `(batch, length)`, in at least float32: above 0 where a token is likely not the
        text's own.

    Masking: as in the backbone; what stands at padding means nothing.

    Example:
        >>> model = TupeTokenDiscriminator(keras_tupe.TupeBackbone(100, 1, 2, 16, 32))
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> tuple(model({"token_ids": ids, "padding_mask": np.ones_like(ids)}).shape)
        (1, 4)
    """

    signature = "replaced"
    examples = (
        {"text": "He sat down by the fire.", "label": "He sat down by the fire."},
        {"text": "She door the opened.", "label": "She opened the door."},
    )

    @property
    def head(self):
        """The discriminator's head."""
        return self.head_parts["tokens"]

    def head_layers(self, backbone):
        return {
            "tokens": DiscriminatorHead(
                backbone.hidden_dim,
                kernel_initializer=normal(backbone),
                dtype=backbone.dtype_policy,
                name="discriminator_head",
            )
        }

    def answer(self, head, encoded, inputs):
        return head["tokens"](encoded["sequence_output"])

    def labelled(self, texts, labels):
        """Returns inputs of `texts`, and which tokens are not those of `labels`, texts as well."""
        x, _, _ = super().labelled(texts, [None] * len(texts))
        if any(label is None for label in labels):
            return x, None, None
        whole, _, _ = super().labelled([(label,) for label in labels], [None] * len(texts))
        is_other = x["token_ids"] != whole["token_ids"]
        return x, is_other.astype("float32"), x["padding_mask"].astype("float32")

    def default_loss(self):  # of labels 1, where a token was replaced
        return _TokenCrossentropy(reduction="mean_with_sample_weight")

    def default_metrics(self):
        return [keras.metrics.BinaryAccuracy(threshold=0)]

    def served(self, answer):
        shares = keras.ops.sigmoid(keras.ops.cast(answer, "float32"))
        return {"replaced_probabilities": shares}


@keras.saving.register_keras_serializable(package="keras_tupe")
class _TokenCrossentropy(keras.losses.Loss):
    """Binary cross entropy of each token, `(batch, length)`: padding may have the weight 0."""

    def call(self, y_true, y_pred):
        return keras.ops.softplus(y_pred) - keras.ops.cast(y_true, y_pred.dtype) * y_pred


TASK = TupeTokenDiscriminator
