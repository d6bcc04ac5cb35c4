"""Masked language modeling."""

import keras
import keras_hub

from keras_tupe.layers import MaskedLMHead
from keras_tupe.models._inputs import check_preprocessor
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.tupe_masked_lm_preprocessor import TupeMaskedLMPreprocessor


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

    def __init__(self, backbone, preprocessor=None, head_activation="gelu", **kwargs):
        check_preprocessor(preprocessor, backbone)
        # === Layers ===
        head = MaskedLMHead(
            backbone.token_embedding,
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            kernel_initializer=keras.initializers.RandomNormal(stddev=backbone.initializer_range),
            activation=head_activation,
            dtype=backbone.dtype_policy,
            name="mlm_head",
        )
        # === Functional graph ===
        mask_positions = keras.Input((None,), dtype="int32", name="mask_positions")
        inputs = {**backbone.input, "mask_positions": mask_positions}
        hidden_states = backbone(backbone.input)["sequence_output"]
        super().__init__(
            inputs=inputs, outputs=head(hidden_states, mask_positions=mask_positions), **kwargs
        )
        # === Config ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = head
        self.head_activation = head_activation

    def _trained(self, inputs):
        found = self.backbone(inputs, output_positions=inputs["mask_positions"], training=True)
        return self.head(found["sequence_output"], None, training=True)

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        if loss == "auto":
            loss = keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        super().compile(optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs)

    def _num_labels(self, length):
        return self.backbone.vocabulary_size

    def get_config(self):
        return {**super().get_config(), "head_activation": self.head_activation}
