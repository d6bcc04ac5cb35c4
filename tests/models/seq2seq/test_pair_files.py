"""Files of models of pairs: presets and `.keras` files answer as before, to the bit."""

import keras
import keras_hub
import numpy as np
import pytest
from keras import ops
from pair_models import backbone, logits_of, pair_lm, some_pairs, text_lm, texts
from position_cases import METHOD_NAMES, Case

from keras_tupe.models import (
    BeamSearch,
    SmoothedCrossentropy,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeSeq2SeqLMPreprocessor,
)

EVERY = [
    pytest.param(name, marks=[] if name == "tupe_r" else pytest.mark.slow) for name in METHOD_NAMES
]
SETTINGS = {
    "num_layers": 2,
    "num_decoder_layers": 1,
    "dropout": 0.2,
    "normalize_first": True,
    "initializer_range": 0.3,
    "layer_norm_epsilon": 1e-3,
    "activation": "gelu_approximate",
    "normalize_embeddings": False,
    "scale_embeddings": True,
}


def states_of(model, given):
    return [ops.convert_to_numpy(value) for value in model(given).values()]


def test_a_config_names_every_argument_and_makes_the_same_model():
    model = backbone(Case("rope"), "mixed_bfloat16", **SETTINGS)
    config = model.get_config()
    assert {name: config[name] for name in SETTINGS} == SETTINGS
    clone = TupeSeq2SeqBackbone.from_config(config)
    assert clone.get_config() == config
    assert [w.path for w in clone.weights] == [w.path for w in model.weights]
    assert clone.dtype_policy.name == "mixed_bfloat16"
    assert [len(blocks) for blocks in (clone.encoder_blocks, clone.decoder_blocks)] == [2, 1]


@pytest.mark.parametrize("name", EVERY)
def test_a_preset_of_a_backbone_answers_as_before(name, tmp_path):
    model, given = backbone(name, "float32"), some_pairs()
    model.save_to_preset(str(tmp_path))
    loaders = (TupeSeq2SeqBackbone, *((keras_hub.models.Backbone,) if name == "tupe_r" else ()))
    for loader in loaders:
        loaded = loader.from_preset(str(tmp_path))
        assert type(loaded) is TupeSeq2SeqBackbone
        assert loaded.get_config() == {**model.get_config(), "name": loaded.name}
        for got, wanted in zip(states_of(loaded, given), states_of(model, given), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_saved_weights_are_of_both_sides(tmp_path):
    model, given = pair_lm(**SETTINGS), some_pairs()
    model.save_weights(tmp_path / "model.weights.h5")
    fresh = pair_lm(scale=None, **SETTINGS)
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(logits_of(fresh, given), logits_of(model, given))
    sides = (fresh.backbone.encoder, fresh.backbone.decoder)
    assert {side.get_layer("token_embedding") for side in sides} == {fresh.backbone.token_embedding}


PAIRS = texts(["1 2 3", "4"], ["3 2", "5 6 ."])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model with a preprocessor, its preset, and its logits of `PAIRS`."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("texts need TensorFlow")
    model = text_lm(target_length=6, dtype="float32", num_decoder_layers=1)
    model.preprocessor.decoder_starts_with_end = True
    folder = tmp_path_factory.mktemp("pairs") / "preset"
    model.save_to_preset(str(folder))
    return model, folder, logits_of(model, model.preprocessor(PAIRS)[0])


@pytest.mark.parametrize(
    "loader", [TupeSeq2SeqLM, pytest.param(keras_hub.models.Seq2SeqLM, marks=pytest.mark.slow)]
)
def test_a_preset_with_texts_answers_as_before(loader, saved):
    model, folder, wanted = saved
    loaded = loader.from_preset(str(folder))
    assert type(loaded) is TupeSeq2SeqLM
    assert type(loaded.preprocessor) is TupeSeq2SeqLMPreprocessor
    x, labels, _ = loaded.preprocessor(PAIRS)
    np.testing.assert_array_equal(logits_of(loaded, x), wanted)
    np.testing.assert_array_equal(labels, model.preprocessor(PAIRS)[1])
    alone = TupeSeq2SeqLMPreprocessor.from_preset(str(folder))
    assert alone.decoder_starts_with_end is True
    assert (alone.encoder_sequence_length, alone.decoder_sequence_length) == (8, 6)


@pytest.mark.slow
def test_a_keras_file_keeps_texts_and_a_smoothed_loss(saved, tmp_path):
    model, _, wanted = saved
    model.compile(loss=SmoothedCrossentropy(0.1), sampler=BeamSearch(2, length_penalty=0.6))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits_of(loaded, loaded.preprocessor(PAIRS)[0]), wanted)
    assert loaded.loss.get_config() == model.loss.get_config()
    assert loaded.evaluate(PAIRS, verbose=0) == model.evaluate(PAIRS, verbose=0)
