"""Encoders that other objectives leave are fine-tuned like any other."""

import glue_cases as cases
import keras
import numpy as np
import pytest

from keras_tupe import (
    TupeBackbone,
    TupeMaskedPairLM,
    TupeMaskedPairLMPreprocessor,
    TupeReplacedTokenDetector,
    TupeTextClassifierPreprocessor,
    TupeTokenizer,
)
from training.presets.encoder import Encoder

KINDS = ("replaced_token", "next_sentence")


def save_preset(folder, kind):
    """Writes what `training.pretrain` leaves of an objective; returns the folder."""
    keras.utils.set_random_seed(0)
    options = {"max_sequence_length": cases.LIMIT, "initializer_range": 0.2}
    tokenizer = TupeTokenizer(cases.WORDS)
    if kind == "replaced_token":
        encoder = TupeBackbone(len(cases.WORDS), 1, 2, 16, 32, "tupe_r", **options)
        generator = TupeBackbone(len(cases.WORDS), 1, 1, 8, 16, embedding_dim=16, **options)
        model = TupeReplacedTokenDetector(generator, encoder)
        model.preprocessor = TupeTextClassifierPreprocessor(tokenizer, sequence_length=cases.LIMIT)
    else:
        encoder = TupeBackbone(len(cases.WORDS), 1, 2, 16, 32, num_segments=2, **options)
        model = TupeMaskedPairLM(encoder)
        model.preprocessor = TupeMaskedPairLMPreprocessor(tokenizer, sequence_length=cases.LIMIT)
    model.save_to_preset(str(folder))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_begins_with_the_encoder_of_the_preset(kind, tmp_path):
    folder = save_preset(tmp_path / "preset", kind)
    encoder = Encoder(folder, dropout=0.0)
    assert encoder.has_segments == (kind == "next_sentence")
    ours = encoder.classifier(2).backbone
    saved = TupeBackbone.from_preset(str(folder))
    assert ours.hidden_dim == 16  # not that of the generator
    for one, other in zip(ours.get_weights(), saved.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "task"), [(KINDS[0], "sst2"), (KINDS[1], "rte")])
def test_the_command_fine_tunes_it(kind, task, tmp_path):
    preset = save_preset(tmp_path / "preset", kind)
    data = cases.write_tasks(tmp_path / "data", task, train=400, dev=120, words=3)
    found, *_ = cases.run(preset, data, tmp_path / "out", task, seeds=1)
    column = found["tasks"][task]["columns"][task]
    assert column["score"] > column["constant"] + 10
