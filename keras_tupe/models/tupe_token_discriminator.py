"""Which tokens of a text were replaced."""

import keras
import keras_hub

from keras_tupe.layers.discriminator_head import DiscriminatorHead
from keras_tupe.models._inputs import check_preprocessor
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.tupe_text_classifier_preprocessor import TupeTextClassifierPreprocessor


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeTokenDiscriminator(TupeTask, keras_hub.models.Task):
    """ELECTRA's discriminator: the encoder and a head that says which tokens were replaced.

    It is what pre-training by `TupeReplacedTokenDetector` leaves, and its encoder is fine-tuned
    like any other: `TupeTextClassifier.from_preset(folder)`.

    Equation: the head's, see `DiscriminatorHead`.

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

    Raises:
        ValueError, TypeError: as the backbone, and if the preprocessor does not fit it.

    Example:
        >>> import numpy as np
        >>> model = TupeTokenDiscriminator(keras_tupe.TupeBackbone(100, 1, 2, 16, 32))
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> tuple(model({"token_ids": ids, "padding_mask": np.ones_like(ids)}).shape)
        (1, 4)

    References:
        Clark et al. ELECTRA. ICLR 2020. https://arxiv.org/abs/2003.10555
    """

    preprocessor_cls = TupeTextClassifierPreprocessor

    def __init__(self, backbone, preprocessor=None, **kwargs):
        check_preprocessor(preprocessor, backbone)
        # === Layers ===
        head = DiscriminatorHead(
            backbone.hidden_dim,
            kernel_initializer=keras.initializers.RandomNormal(stddev=backbone.initializer_range),
            dtype=backbone.dtype_policy,
            name="discriminator_head",
        )
        # === Functional graph ===
        inputs = backbone.input
        outputs = head(backbone(inputs)["sequence_output"])
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        # === Config ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = head

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = keras.optimizers.Adam(5e-5)
        if isinstance(loss, str) and loss == "auto":  # of labels 1, where a token was replaced
            loss = keras.losses.BinaryCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        if isinstance(weighted_metrics, str) and weighted_metrics == "auto":
            weighted_metrics = [keras.metrics.BinaryAccuracy(threshold=0)]
        super().compile(optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs)
