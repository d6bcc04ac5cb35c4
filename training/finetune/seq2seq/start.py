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
from training.finetune.tasks.seq2seq import TRUNK
from training.presets.folder import preset_digest


class Start:
    """What the models of all seeds start as: a preset, or new, with a vocabulary of the pairs.

    Attributes:
        preprocessor: a `TupeSeq2SeqLMPreprocessor`, with the longest rows that are taken.
        position: name of the positional method.
        digest: hash of the preset, `None` of a new model.
    """

    digest = _weights = None

    def __init__(self, settings, pairs):
        lengths = settings.length, settings.target_length
        starts_with_end = False
        if settings.preset is None:
            tokenizer, config = _new(settings, pairs)
        else:
            if settings.position_file is not None:
                positions.load_file(settings.position_file)
            model = TupeSeq2SeqLM.from_preset(settings.preset, preprocessor=None, dtype="float32")
            text = TupeSeq2SeqLMPreprocessor.from_preset(settings.preset)
            backbone = model.backbone
            if backbone.has_length_limit and max(lengths) > backbone.max_sequence_length:
                raise ValueError(
                    "--length and --target-length must not be above the rows of the preset's "
                    f"position tables, {backbone.max_sequence_length}. Received: "
                    f"length={settings.length}, target_length={settings.target_length}"
                )
            config = {**backbone.get_config(), "dtype": None}  # the run's
            tokenizer, starts_with_end = text.tokenizer, text.decoder_starts_with_end
            self._weights = model.get_weights()
            self.digest = preset_digest(settings.preset, settings.position_file)
        self._config = {**config, "dropout": settings.dropout}
        self.position = config["position"]
        self.preprocessor = TupeSeq2SeqLMPreprocessor(tokenizer, *lengths, starts_with_end)

    def model(self, seed):
        """Returns a `TupeSeq2SeqLM` of a seed, without a preprocessor."""
        keras.utils.set_random_seed(seed)
        model = TupeSeq2SeqLM(TupeSeq2SeqBackbone.from_config(self._config))
        if self._weights is not None:
            model.set_weights(self._weights)
        return model


def _new(settings, pairs):
    """Returns a tokenizer of both columns, and what a new model is made of."""
    settings.method()  # loads a file that defines it
    counts = WordCounts(wordpiece_words(settings.lowercase))
    for text in (*pairs.sources, *pairs.targets):
        counts.add(text)
    pieces = wordpiece_from_counts(counts.total(), settings.vocabulary_size)
    tokenizer = TupeTokenizer(pieces, lowercase=settings.lowercase)
    return tokenizer, {
        "vocabulary_size": tokenizer.vocabulary_size(),
        **dataclasses.asdict(SIZES[settings.size]),
        **{name: getattr(settings, name) for name in TRUNK},
        "position": settings.method_name(),
        "position_options": settings.method_options(),
        "max_sequence_length": max(settings.length, settings.target_length),
    }
