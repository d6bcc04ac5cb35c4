"""Classification of texts and pairs of texts."""

import keras
import keras_hub

from keras_tupe.layers import Dropout
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._dense import Dense
from keras_tupe.models._inputs import check_preprocessor
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.tupe_text_classifier_preprocessor import TupeTextClassifierPreprocessor


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeTextClassifier(TupeTask, keras_hub.models.TextClassifier):
    """Fine-tuning model: the encoder and a linear layer over its pooled output.

    Equation (Devlin et al. 2019):

        logits = dropout(pooled_output) W + b

    Args:
        backbone: a `TupeBackbone`.
        num_classes: number of classes; 1 for regression (pass a loss to `compile`).
        preprocessor: optional `TupeTextClassifierPreprocessor`; with it `fit` takes raw strings.
        activation: optional activation of the output. Defaults to none: logits.
        dropout: dropout rate before the linear layer, in [0, 1). Defaults to 0.1.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        `(batch, num_classes)`.

    Masking: as in the backbone.

    Raises:
        ValueError, TypeError: as the backbone, if `num_classes` is not a positive integer, and if
            the preprocessor does not fit the backbone.

    Example:
        >>> import numpy as np
        >>> model = TupeTextClassifier(keras_tupe.TupeBackbone(100, 1, 2, 16, 32), num_classes=3)
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> tuple(model({"token_ids": ids, "padding_mask": np.ones_like(ids)}).shape)
        (1, 3)

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """

    preprocessor_cls = TupeTextClassifierPreprocessor

    def __init__(
        self, backbone, num_classes, preprocessor=None, activation=None, dropout=0.1, **kwargs
    ):
        check_positive_integers(num_classes=num_classes)
        check_preprocessor(preprocessor, backbone)
        # === Layers ===
        output_dropout = Dropout(dropout, dtype=backbone.dtype_policy, name="classifier_dropout")
        output_dense = Dense(
            num_classes,
            activation=activation,
            kernel_initializer=keras.initializers.RandomNormal(stddev=backbone.initializer_range),
            dtype=backbone.dtype_policy,
            name="logits",
        )
        # === Functional graph ===
        inputs = backbone.input
        outputs = output_dense(output_dropout(backbone(inputs)["pooled_output"]))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        # === Config ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.num_classes = num_classes
        self.activation = activation
        self.dropout = dropout

    def _trained(self, inputs):
        cls = keras.ops.zeros_like(inputs["padding_mask"][:, :1], dtype="int32")
        found = self.backbone(inputs, output_positions=cls, training=True)
        pooled = self.backbone.get_layer("pooled_dense")(found["sequence_output"][:, 0])
        dropout, dense = self.get_layer("classifier_dropout"), self.get_layer("logits")
        return dense(dropout(pooled, training=True))

    def _num_labels(self, length):
        return self.num_classes if self.num_classes > 1 else None

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "activation": keras.activations.serialize(keras.activations.get(self.activation)),
            "dropout": self.dropout,
        }
