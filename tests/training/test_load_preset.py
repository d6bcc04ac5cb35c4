"""Presets that commands load as another model than the one that was saved."""

import numpy as np
from tiny_vocabularies import wordpiece_pieces

from keras_tupe import (
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeMaskedPairLM,
    TupeMaskedPairLMPreprocessor,
    TupeTokenizer,
)
from training.presets.load import load_preset


def test_a_preset_of_pairs_is_the_masked_lm_in_it(tmp_path):
    pieces = wordpiece_pieces()
    text = TupeMaskedPairLMPreprocessor(TupeTokenizer(pieces), sequence_length=16)
    backbone = TupeBackbone(len(pieces), 1, 2, 8, 8, max_sequence_length=16, num_segments=2)
    saved = TupeMaskedPairLM(backbone, text)
    saved.save_to_preset(str(tmp_path))
    model, preprocessor = load_preset(tmp_path)
    assert type(model) is TupeMaskedLM
    assert type(preprocessor) is TupeMaskedLMPreprocessor
    assert preprocessor.segments
    x, _, _ = preprocessor(["the dogs ran"])
    np.testing.assert_array_equal(np.asarray(model(x)), np.asarray(saved(x)["masked_lm"]))
