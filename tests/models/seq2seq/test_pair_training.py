"""What models of pairs learn by, and keep: losses, gradients, pairs of texts, files."""

import keras
import numpy as np
import pytest
from keras import ops
from pair_models import (
    backbone,
    log_softmax,
    logits_of,
    pair_inputs,
    pair_lm,
    some_pairs,
    text_lm,
    texts,
)
from position_cases import VOCABULARY, Case, random_ids
from tolerances import in_float64

from keras_tupe.models import BeamSearch, SmoothedCrossentropy, TupeSeq2SeqBackbone

LABELS = random_ids(3, 7, seed=5)
WEIGHTS = some_pairs()["decoder_padding_mask"].astype("float64")


def cross_entropy(logits, labels, share=0.0):
    """The cross-entropy with labels of which a share goes to all tokens alike."""
    wanted = np.eye(logits.shape[-1])[labels] * (1 - share) + share / logits.shape[-1]
    return -(wanted * log_softmax(logits)).sum(-1)


# Losses


@pytest.mark.parametrize("share", [0, 0.1, 0.7])
def test_a_smoothed_loss_equals_its_equation(share):
    logits = np.random.normal(scale=3, size=(3, 7, VOCABULARY))
    wanted = cross_entropy(logits, LABELS, share)
    loss = SmoothedCrossentropy(share, reduction=None, dtype="float64")
    found = ops.convert_to_numpy(loss(LABELS, logits))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=in_float64(1e-12))
    mean = SmoothedCrossentropy(share, dtype="float64")
    found = ops.convert_to_numpy(mean(LABELS, logits, sample_weight=WEIGHTS))
    wanted = (wanted * WEIGHTS).sum() / WEIGHTS.sum()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=in_float64(1e-12))
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(mean))
    assert type(again) is SmoothedCrossentropy
    assert again.get_config() == mean.get_config()


def test_scores_are_log_probabilities_of_the_next_tokens():
    model, given = pair_lm(num_decoder_layers=1), some_pairs()
    found, labels = model.score(given), given["decoder_token_ids"][:, 1:]
    mask = given["decoder_padding_mask"][:, 1:]
    wanted = -cross_entropy(logits_of(model, given)[:, :-1], labels) * mask
    np.testing.assert_allclose(found["log_probabilities"], wanted, atol=in_float64(1e-12))
    np.testing.assert_array_equal(found["token_ids"], labels)
    np.testing.assert_array_equal(found["padding_mask"], mask)


# Gradients


def loss_and_gradients(model, given, labels, weights):
    """Returns the loss of real tokens and its gradients by all weights, by path."""
    trainable = model.trainable_variables

    def run(values):
        scope = keras.StatelessScope(zip(trainable, values, strict=True))
        with scope:
            logits = model(given)
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return ops.sum(losses * weights) / np.sum(weights)

    values = [variable.value for variable in trainable]
    if keras.backend.backend() == "jax":
        import jax

        loss, gradients = jax.jit(jax.value_and_grad(run))(values)
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = run(values)
        gradients = tape.gradient(loss, values)
    names = [f"{index}:{weight.path}" for index, weight in enumerate(trainable)]
    return float(loss), dict(zip(names, map(ops.convert_to_numpy, gradients), strict=True))


@pytest.mark.parametrize("name", ["tupe_r", pytest.param("absolute", marks=pytest.mark.slow)])
def test_padding_changes_no_gradient(name):
    model, sources, targets = pair_lm(name), random_ids(2, 9, 1), random_ids(2, 8, 2)
    labels, weights = random_ids(2, 8, 3), np.arange(8) < [[5], [3]]
    lengths = [6, 4], [5, 3]
    found = []
    for source_length, length in ((6, 5), (9, 8)):
        given = pair_inputs(sources[:, :source_length], targets[:, :length], *lengths)
        few = weights[:, :length].astype("float64")
        found.append(loss_and_gradients(model, given, labels[:, :length], few))
    (loss, gradients), (padded_loss, padded) = found
    assert padded_loss == pytest.approx(loss, abs=in_float64(1e-12))
    learning = 0
    for path, gradient in gradients.items():
        np.testing.assert_allclose(
            padded[path], gradient, rtol=0, atol=in_float64(1e-12), err_msg=path
        )
        learning += np.abs(gradient).max() > 1e-6
    dead = [path for path in gradients if path.endswith("key/bias")]
    assert len(dead) == 1 + 2 * 2  # of every attention
    assert learning >= len(gradients) - len(dead) - 2  # what is not seen of an untied first token


# Texts

PAIRS = texts(["1 2", "3 4 5", "6", "7 8"] * 2, ["2 1", "5 4 3", "6 .", "8 7"] * 2)


@pytest.mark.slow
def test_a_model_learns_pairs_by_heart_and_writes_them(tensorflow):
    model = text_lm(dtype="float32", num_decoder_layers=1)
    model.compile(keras.optimizers.Adam(0.02))
    model.fit(PAIRS, batch_size=8, epochs=200, verbose=0)
    assert model.generate(PAIRS["encoder_text"][:4]) == PAIRS["decoder_text"][:4]
    begun = texts(PAIRS["encoder_text"][:2], ["2", "5 4"])
    assert model.generate(begun) == PAIRS["decoder_text"][:2]
    assert model.generate(texts("3 4 5", "5")) == "5 4 3"
    likely, other = (
        model.score(texts(["1 2"], [text]))["log_probabilities"].sum() for text in ("2 1", "8 7")
    )
    assert likely > -1 > -4 > other


# Files

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


def test_a_config_names_every_argument_and_makes_the_same_model():
    model = backbone(Case("rope"), "mixed_bfloat16", **SETTINGS)
    config = model.get_config()
    assert {name: config[name] for name in SETTINGS} == SETTINGS
    clone = TupeSeq2SeqBackbone.from_config(config)
    assert clone.get_config() == config
    assert [w.path for w in clone.weights] == [w.path for w in model.weights]
    assert clone.dtype_policy.name == "mixed_bfloat16"
    assert [len(x.blocks) for x in (clone.encoder_trunk, clone.decoder_trunk)] == [2, 1]


@pytest.mark.slow
def test_a_keras_file_keeps_texts_and_a_smoothed_loss(tensorflow, tmp_path):
    model = text_lm(target_length=6, dtype="float32", num_decoder_layers=1)
    model.preprocessor.decoder_starts_with_end = True
    wanted = logits_of(model, model.preprocessor(PAIRS)[0])
    model.compile(loss=SmoothedCrossentropy(0.1), sampler=BeamSearch(2, length_penalty=0.6))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits_of(loaded, loaded.preprocessor(PAIRS)[0]), wanted)
    assert loaded.loss.get_config() == model.loss.get_config()
    assert loaded.evaluate(PAIRS, verbose=0) == model.evaluate(PAIRS, verbose=0)
