"""Masked language modeling beside a question about the two segments of a row."""

import keras
import keras_hub
from keras import ops

from keras_tupe.layers import MaskedLMHead
from keras_tupe.layers._dense import Dense
from keras_tupe.layers._parts import at_least_float32
from keras_tupe.models._inputs import check_preprocessor
from keras_tupe.models._labels_by_name import LabelsByName
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.tupe_masked_lm import TupeMaskedLM
from keras_tupe.models.tupe_masked_pair_lm_preprocessor import TupeMaskedPairLMPreprocessor

_NUM_CLASSES = 2


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeMaskedPairLM(TupeTask, LabelsByName, keras_hub.models.Task):
    """Pre-training model with BERT's two tasks: masked tokens, and a pair of segments.

    The pair's class 0 says that the two segments stand as they were written. What class 1 says is
    a matter of the rows, see `keras_tupe.data.MaskedPairs`: the second segment is of another
    document (next sentence, BERT), or the two are swapped (sentence order, ALBERT).

    Equation: of masked tokens the head's, see `MaskedLMHead`; of the pair

        logits = pooled_output W + b

    Default loss, with the weights of a batch,

        loss = sum_m w_m * ce_m / sum_m w_m  +  sum_i v_i * ce_i / sum_i v_i

    over the masked slots m and the rows i, with ce the cross entropy of each.

    Args:
        backbone: a `TupeBackbone` with `num_segments=2`.
        preprocessor: optional `TupeMaskedPairLMPreprocessor`; with it `fit` takes pairs of strings
            and their classes.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: the backbone's, and `mask_positions` `(batch, predictions)`, integers in
            [0, length). Labels and weights for `fit` are dictionaries of `masked_lm`
            `(batch, predictions)` and `pair` `(batch,)`.

    Returns:
        Dictionary of logits, in at least float32: `masked_lm`
        `(batch, predictions, vocabulary_size)` and `pair` `(batch, 2)`.

    Masking: as in the backbone.

    Raises:
        ValueError: also if the backbone has not two segments.
        TypeError: as the backbone.

    Example:
        >>> import numpy as np
        >>> model = TupeMaskedPairLM(keras_tupe.TupeBackbone(100, 1, 2, 16, 32, num_segments=2))
        >>> ids = np.array([[2, 7, 3, 9, 3]])
        >>> given = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        >>> given["segment_ids"] = np.array([[0, 0, 0, 1, 1]])
        >>> outputs = model({**given, "mask_positions": np.array([[1]])})
        >>> tuple(outputs["masked_lm"].shape), tuple(outputs["pair"].shape)
        ((1, 1, 100), (1, 2))

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
        Lan et al. ALBERT. ICLR 2020. https://arxiv.org/abs/1909.11942
    """

    preprocessor_cls = TupeMaskedPairLMPreprocessor

    def __init__(self, backbone, preprocessor=None, **kwargs):
        if backbone.num_segments != 2:
            raise ValueError(
                "A model of pairs must tell two segments apart. Make its encoder with "
                f"`num_segments=2`. Received: num_segments={backbone.num_segments}"
            )
        check_preprocessor(preprocessor, backbone)
        # === Layers ===
        initializer = keras.initializers.RandomNormal(stddev=backbone.initializer_range)
        head = MaskedLMHead(
            backbone.token_embedding,
            layer_norm_epsilon=backbone.layer_norm_epsilon,
            kernel_initializer=initializer,
            dtype=backbone.dtype_policy,
            name="mlm_head",
        )
        pair_head = Dense(
            _NUM_CLASSES,
            kernel_initializer=initializer.clone(),
            dtype=at_least_float32(backbone.compute_dtype),
            name="pair_logits",
        )
        # === Functional graph ===
        mask_positions = keras.Input((None,), dtype="int32", name="mask_positions")
        found = backbone(backbone.input)
        outputs = {
            "masked_lm": head(found["sequence_output"], mask_positions=mask_positions),
            "pair": pair_head(found["pooled_output"]),
        }
        inputs = {**backbone.input, "mask_positions": mask_positions}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        # === Config ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head = head
        self.pair_head = pair_head

    def masked_lm(self):
        """Returns the `TupeMaskedLM` of the same encoder, with a copy of the head for tokens.

        It shares the encoder's weights, and has a preprocessor of the same settings if there is
        one.
        """
        text = None if self.preprocessor is None else self.preprocessor.masked_lm()
        model = TupeMaskedLM(self.backbone, text)
        model.head.set_weights(self.head.get_weights())
        return model

    def _trained(self, inputs):
        cls = ops.zeros_like(inputs["mask_positions"][:, :1])
        positions = ops.concatenate([cls, inputs["mask_positions"]], axis=1)
        found = self.backbone(inputs, output_positions=positions, training=True)
        hidden_states = found["sequence_output"]  # (b, 1 + predictions, m)
        pooled = self.backbone.get_layer("pooled_dense")(hidden_states[:, 0])
        return {
            "masked_lm": self.head(hidden_states[:, 1:], None, training=True),
            "pair": self.pair_head(pooled),
        }

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = keras.optimizers.Adam(5e-5)
        if isinstance(loss, str) and loss == "auto":
            loss = {
                name: keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction="mean_with_sample_weight"
                )
                for name in self.output
            }
        if isinstance(weighted_metrics, str) and weighted_metrics == "auto":
            weighted_metrics = {
                name: [keras.metrics.SparseCategoricalAccuracy()] for name in self.output
            }
        super().compile(optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs)

    def _num_labels(self, length):
        return {"masked_lm": self.backbone.vocabulary_size, "pair": _NUM_CLASSES}
