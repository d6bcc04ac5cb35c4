"""Pre-training by replaced tokens: a generator and a discriminator, trained together."""

import pathlib

import keras
import keras_hub
from keras import ops

from keras_tupe.layers.disentangled_embedding import DisentangledEmbedding
from keras_tupe.layers.token_replacement import TokenReplacement
from keras_tupe.models._detector_parts import again, as_task, check_arguments, check_pair
from keras_tupe.models._labels_by_name import LabelsByName
from keras_tupe.models._task_class import TupeTask
from keras_tupe.models.replaced_tokens import ReplacedTokenAccuracy, ReplacedTokenCrossentropy
from keras_tupe.models.tupe_backbone import TupeBackbone
from keras_tupe.models.tupe_masked_lm import TupeMaskedLM
from keras_tupe.models.tupe_masked_lm_preprocessor import TupeMaskedLMPreprocessor
from keras_tupe.models.tupe_text_classifier_preprocessor import TupeTextClassifierPreprocessor
from keras_tupe.models.tupe_token_discriminator import TupeTokenDiscriminator

GENERATOR = "generator"  # folder of it in the preset of the discriminator


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeReplacedTokenDetector(TupeTask, LabelsByName, keras_hub.models.Task):
    """ELECTRA's pre-training: a small masked language model fools an encoder, which finds it out.

    The generator fills masked slots with tokens drawn from its own predictions; the discriminator
    says of every token whether it is the text's own. No gradient passes from one to the other. What
    is used later is the discriminator, see `save_to_preset`.

    Equation, with the loss weight lambda:

        loss = mean over masked slots of -log p_generator(token)
               + lambda * mean over all tokens of their binary cross entropy

    see `ReplacedTokenCrossentropy`.

    Differences from the source: of the embeddings the token vectors alone are shared; vectors of
    positions and segments are each model's own, as position methods differ in what they have.

    Args:
        generator: a `TupeBackbone`, or a `TupeMaskedLM`; its configuration and weights are taken,
            and the model in training is the attribute `generator`.
        discriminator: a `TupeBackbone`, or a `TupeTokenDiscriminator`; likewise.
        embedding_sharing: `"tied"`, one matrix of token vectors, the discriminator's, learned by
            both (ELECTRA); `"gradient_disentangled"`, that of the generator, to which the
            discriminator adds a difference of its own (DeBERTa-v3, see `DisentangledEmbedding`); or
            `"none"`. Defaults to `"tied"`.
        discriminator_weight: lambda, a number >= 0. Defaults to 50.
        **kwargs: `name` and `trainable`.

    Attributes:
        generator: a `TupeMaskedLM`.
        discriminator: a `TupeTokenDiscriminator`.
        backbone: the discriminator's.
        preprocessor: `None`; a `TupeTextClassifierPreprocessor` may be set for `save_to_preset`.

    Call arguments:
        inputs: the backbones', and `mask_positions` `(batch, slots)`, integers in [0, length), with
            `sampling_noise` `(batch, slots)`, see `keras_tupe.layers.TokenReplacement`;
            `keras_tupe.data.ReplacedTokens` makes them. Labels and weights for `fit` are
            dictionaries of `masked_lm` `(batch, slots)` and `replaced_token` `(batch, length)`:
            the tokens as they were.

    Returns:
        Dictionary, in at least float32: `masked_lm`, the generator's logits
        `(batch, slots, vocabulary_size)`; `replaced_token` `(batch, length, 2)`: the
        discriminator's logits, and the token ids that it saw.

    Masking: as in the backbones.

    Raises:
        ValueError: for models of different vocabularies or segments, embeddings of different widths
            that are to be shared (give the generator `embedding_dim`), an unknown sharing, or a
            weight that is no number >= 0.
        TypeError: for models of other classes.

    Example:
        >>> import numpy as np
        >>> generator = keras_tupe.TupeBackbone(100, 1, 1, 8, 16, embedding_dim=16)
        >>> model = TupeReplacedTokenDetector(generator, keras_tupe.TupeBackbone(100, 1, 2, 16, 32))
        >>> ids = np.array([[2, 4, 9, 3]])
        >>> where = {"mask_positions": np.array([[1]]), "sampling_noise": np.array([[0.5]])}
        >>> outputs = model({"token_ids": ids, "padding_mask": np.ones_like(ids), **where})
        >>> tuple(outputs["masked_lm"].shape), tuple(outputs["replaced_token"].shape)
        ((1, 1, 100), (1, 4, 2))

    References:
        Clark et al. ELECTRA. ICLR 2020. https://arxiv.org/abs/2003.10555
        Ke, He, Liu. ICLR 2021, Appendix: ELECTRA with untied positions.
        He, Gao, Chen. DeBERTaV3. ICLR 2023. https://arxiv.org/abs/2111.09543
    """

    preprocessor_cls = TupeTextClassifierPreprocessor  # of the preset

    def __init__(
        self,
        generator,
        discriminator,
        embedding_sharing="tied",
        discriminator_weight=50.0,
        **kwargs,
    ):
        check_arguments(embedding_sharing, discriminator_weight)
        generator = as_task(generator, TupeMaskedLM, "generator")
        discriminator = as_task(discriminator, TupeTokenDiscriminator, "discriminator")
        check_pair(generator.backbone, discriminator.backbone, embedding_sharing)
        # === Layers ===
        if embedding_sharing == "tied":
            generator = again(generator, discriminator.backbone.token_embedding)
        elif embedding_sharing == "gradient_disentangled":
            base = generator.backbone.token_embedding
            layer = DisentangledEmbedding(base, dtype=base.dtype_policy, name="token_embedding")
            discriminator = again(discriminator, layer)
        replacement = TokenReplacement(name="token_replacement")
        # === Functional graph ===
        noise = keras.Input((None,), dtype="float32", name="sampling_noise")
        inputs = {**generator.input, "sampling_noise": noise}
        logits = generator(generator.input)
        seen = replacement(
            inputs["token_ids"],
            mask_positions=inputs["mask_positions"],
            sampling_noise=noise,
            logits=logits,
        )
        names = [tensor.name for tensor in discriminator.inputs]
        found = discriminator({**{name: inputs[name] for name in names}, "token_ids": seen})
        outputs = {
            "masked_lm": logits,
            "replaced_token": ops.stack([found, ops.cast(seen, found.dtype)], axis=-1),
        }
        super().__init__(inputs=inputs, outputs=outputs, compile=False, **kwargs)
        # === Config ===
        self.generator = generator
        self.discriminator = discriminator
        self.backbone = discriminator.backbone
        self.preprocessor = None
        self.embedding_sharing = embedding_sharing
        self.discriminator_weight = discriminator_weight
        self.compile()  # which asks for the weight

    @property
    def loss_weights(self):
        """The factor of each loss, by the names of the outputs."""
        return {"masked_lm": 1.0, "replaced_token": float(self.discriminator_weight)}

    @property
    def parts(self):
        """The models in it, by names that tell their weights apart."""
        return {"generator": self.generator, "discriminator": self.discriminator}

    def compile(self, optimizer="auto", loss="auto", *, weighted_metrics="auto", **kwargs):
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = keras.optimizers.Adam(5e-4)
        if isinstance(loss, str) and loss == "auto":
            loss = {
                "masked_lm": keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction="mean_with_sample_weight"
                ),
                "replaced_token": ReplacedTokenCrossentropy(),
            }
            kwargs.setdefault("loss_weights", self.loss_weights)
        if isinstance(weighted_metrics, str) and weighted_metrics == "auto":
            weighted_metrics = {
                "masked_lm": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
                "replaced_token": [ReplacedTokenAccuracy(name="accuracy")],
            }
        super().compile(optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs)

    def separate(self):
        """Returns the generator and the discriminator, each with token vectors of its own.

        Returns:
            `(generator, discriminator)`: a `TupeMaskedLM` and a `TupeTokenDiscriminator`.
        """
        return again(self.generator), again(self.discriminator)

    def save_to_preset(self, preset_dir, **kwargs):
        """Writes a preset of the discriminator, with that of the generator in a folder of it.

        Args:
            preset_dir: folder.
            **kwargs: as of every task.
        """
        generator, discriminator = self.separate()
        if self.preprocessor is not None:
            settings = self.preprocessor
            discriminator.preprocessor = settings
            generator.preprocessor = TupeMaskedLMPreprocessor(
                settings.tokenizer,
                sequence_length=settings.sequence_length,
                segments=settings.segments,
            )
        discriminator.save_to_preset(preset_dir, **kwargs)
        generator.save_to_preset(str(pathlib.Path(preset_dir, GENERATOR)), **kwargs)

    @classmethod
    def from_preset(cls, preset, load_weights=True, preprocessor=None, dtype=None, **kwargs):
        """Returns a detector from what `save_to_preset` wrote.

        Args:
            preset: folder.
            load_weights: as of every task.
            preprocessor: must be `None`.
            dtype: Keras dtype policy of both models.
            **kwargs: `embedding_sharing`, `discriminator_weight`, `name`.

        Raises:
            FileNotFoundError, ValueError: as every task; also if there is no generator.
        """
        folder = pathlib.Path(preset, GENERATOR)
        if not folder.is_dir():
            raise FileNotFoundError(
                "A preset to train on by replaced tokens must have its generator in the folder "
                f"{GENERATOR!r}. Received: no {str(folder)!r}"
            )
        given = {"preprocessor": preprocessor, "dtype": dtype, "load_weights": load_weights}
        discriminator = TupeTokenDiscriminator.from_preset(preset, **given)
        generator = TupeMaskedLM.from_preset(str(folder), **given)
        return cls(generator, discriminator, **kwargs)

    def _num_labels(self, length):
        return {"masked_lm": self.backbone.vocabulary_size, "replaced_token": None}

    @classmethod
    def _config_parts(cls):
        return {"generator": TupeBackbone, "discriminator": TupeBackbone}

    def get_config(self):
        parts = {name: task.backbone for name, task in self.parts.items()}
        return {
            "name": self.name,
            "trainable": self.trainable,
            **{name: keras.saving.serialize_keras_object(x) for name, x in parts.items()},
            "embedding_sharing": self.embedding_sharing,
            "discriminator_weight": self.discriminator_weight,
            "head_activation": self.parts["generator"].head_activation,
        }

    @classmethod
    def from_config(cls, config):
        activation = config.get("head_activation", "gelu")  # files of before have none
        config = {name: value for name, value in config.items() if name != "head_activation"}
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("generator", "discriminator")
        }
        generator = TupeMaskedLM(
            parts.pop("generator"), head_activation=activation, name="generator"
        )
        return cls(**{**config, **parts, "generator": generator})
