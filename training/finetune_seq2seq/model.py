"""The model that a run starts with: new, or of a preset."""

import dataclasses

import keras

from keras_tupe import TupeTokenizer, positions
from keras_tupe.data import WordCounts, wordpiece_from_counts, wordpiece_words
from keras_tupe.models import (
    SIZES,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeSeq2SeqLMPreprocessor,
)
from training.finetune_seq2seq.checks import TRUNK
from training.presets.folder import preset_digest


def start_of(settings, pairs):
    """Returns what the models of a command start as.

    Args:
        settings: a `Settings` of `training.finetune_seq2seq`.
        pairs: the `Pairs` to train on.

    Raises:
        ValueError: if the preset, the pairs or the settings do not fit each other.
    """
    if settings.preset is None:
        return _New(settings, pairs)
    return _OfPreset(settings)


class _Start:
    """What the models of all seeds start as.

    Attributes:
        preprocessor: a `TupeSeq2SeqLMPreprocessor`, with the longest rows that are taken.
        digest: hash of the preset, `None` of a new model.
    """

    digest = None

    def __init__(self, settings, tokenizer, config, starts_with_end=False):
        self._config = {**config, "dropout": settings.dropout}
        lengths = settings.max_source_length, settings.max_target_length
        self.preprocessor = TupeSeq2SeqLMPreprocessor(tokenizer, *lengths, starts_with_end)

    @property
    def position(self):
        """Name of the positional method."""
        return self._config["position"]

    def model(self, seed):
        """Returns a `TupeSeq2SeqLM` of a seed, without a preprocessor."""
        keras.utils.set_random_seed(seed)
        return TupeSeq2SeqLM(TupeSeq2SeqBackbone.from_config(self._config))


class _New(_Start):
    def __init__(self, settings, pairs):
        settings.method()  # loads a file that defines it
        tokenizer = TupeTokenizer(_vocabulary(settings, pairs), lowercase=settings.lowercase)
        config = {
            "vocabulary_size": tokenizer.vocabulary_size(),
            **dataclasses.asdict(SIZES[settings.size]),
            **{name: getattr(settings, name) for name in TRUNK},
            "position": settings.method_name(),
            "position_options": settings.method_options(),
            "max_sequence_length": max(settings.max_source_length, settings.max_target_length),
        }
        super().__init__(settings, tokenizer, config)


class _OfPreset(_Start):
    def __init__(self, settings):
        if settings.position_file is not None:
            positions.load_file(settings.position_file)
        preset = settings.preset
        model = TupeSeq2SeqLM.from_preset(preset, preprocessor=None, dtype="float32")
        text = TupeSeq2SeqLMPreprocessor.from_preset(preset)
        backbone = model.backbone
        longest = max(settings.max_source_length, settings.max_target_length)
        if backbone.has_length_limit and longest > backbone.max_sequence_length:
            raise ValueError(
                "--max-source-length and --max-target-length must not be above the rows of the "
                f"preset's position tables, {backbone.max_sequence_length}. Received: "
                f"max_source_length={settings.max_source_length}, "
                f"max_target_length={settings.max_target_length}"
            )
        config = {**backbone.get_config(), "dtype": None}  # the run's
        super().__init__(settings, text.tokenizer, config, text.decoder_starts_with_end)
        self._weights = model.get_weights()
        self.digest = preset_digest(preset, settings.position_file)

    def model(self, seed):
        model = super().model(seed)
        model.set_weights(self._weights)
        return model


def _vocabulary(settings, pairs):
    """Returns the pieces of a WordPiece vocabulary of both columns."""
    counts = WordCounts(wordpiece_words(settings.lowercase))
    for texts in (pairs.sources, pairs.targets):
        for text in texts:
            counts.add(text)
    return wordpiece_from_counts(counts.total(), settings.vocabulary_size)
