"""Replaced tokens: what is drawn, what is lost, what is shared, and what is left."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe import (
    TupeBackbone,
    TupeMaskedLM,
    TupeReplacedTokenDetector,
    TupeTextClassifier,
    TupeTokenDiscriminator,
)
from keras_tupe.data import Masking, ReplacedTokens
from keras_tupe.layers import TokenReplacement
from keras_tupe.models import ReplacedTokenAccuracy, ReplacedTokenCrossentropy
from keras_tupe.objectives import OBJECTIVES
from keras_tupe.trainer import Trainer

METRICS = OBJECTIVES["replaced_token"].metrics
VOCABULARY, LENGTH, ROWS = 23, 9, 8
RULE = ReplacedTokens(Masking(VOCABULARY, mask_id=4, pad_id=0, special_ids=(1, 2, 3), rate=0.3))


def scrambled(model, seed=0):
    random = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        center = 1.0 if weight.path.endswith("gamma") else 0.0
        weight.assign(random.normal(center, 0.3, weight.shape))
    return model


def detector(dtype="float64", **kwargs):
    sizes = {"max_sequence_length": LENGTH, "dropout": 0.0, "dtype": dtype}
    generator = TupeBackbone(VOCABULARY, 1, 1, 6, 8, "absolute", embedding_dim=10, **sizes)
    discriminator = TupeBackbone(VOCABULARY, 1, 2, 10, 12, "tupe_r", **sizes)
    return scrambled(TupeReplacedTokenDetector(generator, discriminator, **kwargs))


def batch(count=ROWS, seed=3):
    """Returns inputs, labels and weights of rows of several lengths."""
    random = np.random.default_rng(seed)
    rows = random.integers(5, VOCABULARY, (count, LENGTH))
    rows[:, 0] = 2
    rows[np.arange(LENGTH) >= random.integers(4, LENGTH + 1, (count, 1))] = 0
    return RULE.examples(rows, np.arange(count), seed=seed)


# === Rows ===


def test_chosen_tokens_are_masked_and_the_text_is_the_label():
    inputs, labels, weights = batch()
    text, used = labels["replaced_token"], weights["masked_lm"] > 0
    positions = inputs["mask_positions"]
    expected = text.copy()
    for row, slot in zip(*np.nonzero(used), strict=True):
        expected[row, positions[row, slot]] = 4
    np.testing.assert_array_equal(inputs["token_ids"], expected)
    np.testing.assert_array_equal(
        labels["masked_lm"][used], np.take_along_axis(text, positions, 1)[used]
    )
    np.testing.assert_array_equal(weights["replaced_token"], text != 0)
    noise = inputs["sampling_noise"]
    assert ((noise[used] >= 0) & (noise[used] < 1)).all()
    assert (noise[~used] == -1).all()
    assert set(np.unique(used)) == {False, True}


def test_noise_is_uniform():
    noise = RULE.examples(np.full((4000, LENGTH), 7), np.arange(4000), seed=1)[0]["sampling_noise"]
    counts = np.histogram(noise[noise >= 0], 10, (0, 1))[0]
    assert np.abs(counts - counts.mean()).max() < 5 * np.sqrt(counts.mean() * 0.9)


# === What is drawn ===


def test_tokens_are_drawn_with_their_probabilities():
    count = 20_000
    random = np.random.default_rng(0)
    probabilities = np.array([0.05, 0.3, 0.0, 0.15, 0.25, 0.24, 0.01])
    logits = np.log(np.maximum(probabilities, 1e-30)) + 3.0
    tokens = np.full((count, 2), 9, "int32")
    drawn = TokenReplacement()(
        tokens,
        mask_positions=np.ones((count, 1), "int32"),
        sampling_noise=random.random((count, 1)).astype("float32"),
        logits=np.broadcast_to(logits, (count, 1, 7)).astype("float32"),
    )
    drawn = ops.convert_to_numpy(drawn)
    assert (drawn[:, 0] == 9).all()
    counts = np.bincount(drawn[:, 1], minlength=7)
    assert counts[2] == 0
    sigma = np.sqrt(count * probabilities * (1 - probabilities))
    assert (np.abs(counts - count * probabilities) <= 5 * sigma).all()


def test_slots_that_are_not_in_use_change_nothing():
    tokens = np.array([[2, 4, 8, 4]])
    drawn = TokenReplacement()(
        tokens,
        mask_positions=np.array([[1, 3, 0, 0]]),
        sampling_noise=np.array([[0.999, 0.0, -1.0, -1.0]]),
        logits=np.zeros((1, 4, 5)),
    )
    assert ops.convert_to_numpy(drawn).tolist() == [[2, 4, 8, 0]]


# === What is answered and lost ===


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def test_answers_and_losses_are_those_of_the_two_models():
    model = detector()
    inputs, labels, weights = batch()
    outputs = {name: ops.convert_to_numpy(x) for name, x in model(inputs).items()}
    generator, discriminator = model.separate()
    trunk = {name: inputs[name] for name in ("token_ids", "padding_mask")}
    logits = ops.convert_to_numpy(generator({**trunk, "mask_positions": inputs["mask_positions"]}))
    np.testing.assert_allclose(outputs["masked_lm"], logits, atol=1e-12)
    # drawn again, slot by slot
    seen = inputs["token_ids"].copy()
    for row, slot in zip(*np.nonzero(weights["masked_lm"]), strict=True):
        shares = np.exp(logits[row, slot] - logits[row, slot].max())
        below = np.cumsum(shares / shares.sum()) > inputs["sampling_noise"][row, slot]
        seen[row, inputs["mask_positions"][row, slot]] = np.argmax(below)
    np.testing.assert_array_equal(outputs["replaced_token"][..., 1], seen)
    found = ops.convert_to_numpy(discriminator({**trunk, "token_ids": seen}))
    real = inputs["padding_mask"] == 1
    np.testing.assert_allclose(outputs["replaced_token"][..., 0][real], found[real], atol=1e-12)

    replaced = seen != labels["replaced_token"]
    assert 0 < replaced.sum() < weights["masked_lm"].sum() + 1
    values = softplus(found) - replaced * found
    expected = (values * real).sum() / real.sum()
    loss = ReplacedTokenCrossentropy(dtype="float64")
    got = loss(labels["replaced_token"], outputs["replaced_token"], weights["replaced_token"])
    np.testing.assert_allclose(float(got), expected, rtol=1e-12)
    accuracy = ReplacedTokenAccuracy()
    accuracy.update_state(labels["replaced_token"], outputs["replaced_token"], real)
    expected = ((found > 0) == replaced)[real].mean()
    np.testing.assert_allclose(float(accuracy.result()), expected, rtol=1e-6)


def trained(model, steps=3, **kwargs):
    """Returns the trainer of a model after some steps of SGD."""
    trainer = Trainer(model, **kwargs)
    trainer.compile(keras.optimizers.SGD(0.1), weighted_metrics=METRICS())
    inputs, labels, weights = batch(steps * ROWS)
    trainer.fit(inputs, labels, sample_weight=weights, batch_size=ROWS, shuffle=False, verbose=0)
    return trainer


def test_logs_have_both_losses_and_accuracies():
    trainer = trained(detector("float32"), steps=1)
    inputs, labels, weights = batch(11)
    found = trainer.evaluate(inputs, labels, sample_weight=weights, batch_size=4, verbose=0)
    names = {"loss", "masked_lm_loss", "masked_lm_accuracy"}
    assert set(found) == names | {"replaced_token_loss", "replaced_token_accuracy"}
    total = found["masked_lm_loss"] + 50 * found["replaced_token_loss"]
    np.testing.assert_allclose(found["loss"], total, rtol=1e-5)


# === What is shared ===


@pytest.mark.parametrize("sharing", ["tied", "gradient_disentangled", "none"])
def test_token_vectors_are_shared_as_asked_for(sharing):
    model = detector(embedding_sharing=sharing, discriminator_weight=0.0)
    first = model.generator.backbone.token_embedding
    second = model.discriminator.backbone.token_embedding
    count = sum("token_embedding" in w.path for w in model.trainable_variables)
    assert count == (1 if sharing == "tied" else 2)
    assert (first is second) == (sharing == "tied")
    before = [ops.convert_to_numpy(x.embeddings) for x in (first, second)]
    trained(model)
    after = [ops.convert_to_numpy(x.embeddings) for x in (first, second)]
    moved = [np.abs(a - b).max() > 1e-4 for a, b in zip(after, before, strict=True)]
    # the generator's loss alone counts here: a discriminator of its own vectors stays as it is
    assert moved == [True, sharing != "none"]
    if sharing == "gradient_disentangled":
        np.testing.assert_allclose(after[1] - after[0], before[1] - before[0], atol=1e-12)


def test_the_discriminator_moves_its_difference_alone():
    found = []
    for weight in (50.0, 0.0):
        model = detector(embedding_sharing="gradient_disentangled", discriminator_weight=weight)
        trained(model)
        table = model.generator.backbone.token_embedding.embeddings
        found.append(ops.convert_to_numpy(table))
    np.testing.assert_allclose(*found, atol=1e-12)


# === What is left ===


@pytest.mark.parametrize(
    "sharing", ["tied", pytest.param("gradient_disentangled", marks=pytest.mark.slow)]
)
def test_presets_are_plain_models_that_fine_tune_and_train_on(sharing, tmp_path):
    model = detector("float32", embedding_sharing=sharing)
    model.save_to_preset(str(tmp_path))
    inputs, _, _ = batch()
    trunk = {name: inputs[name] for name in ("token_ids", "padding_mask")}
    expected = ops.convert_to_numpy(model.discriminator(trunk))
    again = TupeTokenDiscriminator.from_preset(str(tmp_path))
    np.testing.assert_allclose(ops.convert_to_numpy(again(trunk)), expected, atol=1e-6)
    classifier = TupeTextClassifier.from_preset(str(tmp_path), num_classes=2, preprocessor=None)
    np.testing.assert_allclose(
        ops.convert_to_numpy(classifier.backbone(trunk)["sequence_output"]),
        ops.convert_to_numpy(again.backbone(trunk)["sequence_output"]),
    )
    whole = TupeReplacedTokenDetector.from_preset(str(tmp_path), embedding_sharing=sharing)
    if sharing == "tied":  # a disentangled one begins with two tables that differ
        for name, value in model(inputs).items():
            got = ops.convert_to_numpy(whole(inputs)[name])
            np.testing.assert_allclose(got, ops.convert_to_numpy(value), atol=1e-5)
    assert isinstance(TupeMaskedLM.from_preset(str(tmp_path / "generator")), TupeMaskedLM)


def test_a_keras_file_goes_on(tmp_path):
    trainer = trained(detector("float32", embedding_sharing="gradient_disentangled"), steps=1)
    trainer.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    inputs, labels, weights = batch()
    models = trainer.model, again
    scores = [x.evaluate(inputs, labels, sample_weight=weights, verbose=0) for x in models]
    np.testing.assert_allclose(*scores, rtol=1e-6)
    names = list(trainer.state_variables)
    assert any(name.startswith("model/generator/block_0") for name in names)
    assert any(name.startswith("model/discriminator/block_0") for name in names)


@pytest.mark.parametrize("sharing", ["tied", "none"])
def test_the_generator_keeps_the_activation_of_its_head(sharing, tmp_path):
    generator = TupeMaskedLM(backbone(), head_activation="gelu_approximate", name="generator")
    whole = TupeReplacedTokenDetector(generator, backbone(), sharing)
    whole.save(tmp_path / "whole.keras")
    again = keras.saving.load_model(tmp_path / "whole.keras")
    for model in (whole.generator, whole.separate()[0], again.parts["generator"]):
        assert model.head_activation == "gelu_approximate"
    config = whole.get_config()
    del config["head_activation"]  # as files of before
    before = TupeReplacedTokenDetector.from_config(config)
    assert before.parts["generator"].head_activation == "gelu"


# === Bad input ===


def backbone(vocabulary=VOCABULARY, width=10, **kwargs):
    return TupeBackbone(vocabulary, 1, 2, width, 8, max_sequence_length=LENGTH, **kwargs)


def test_models_that_do_not_fit_each_other_and_presets_without_a_generator(tmp_path):
    plain, tasks = backbone(), TupeMaskedLM(backbone())
    for generator, discriminator, arguments, message in (
        (plain, backbone(30), {}, "same vocabulary_size.*23 in the generator, 30"),
        (plain, backbone(num_segments=2), {}, "same num_segments"),
        (backbone(width=6), plain, {}, "same embedding width.*`embedding_dim`"),
        (plain, plain, {"embedding_sharing": "tide"}, "one of .'tied'.*'tide'"),
        (plain, plain, {"discriminator_weight": -1}, "number at least 0.*-1"),
        (plain, tasks, {}, "`discriminator` must be.*TupeMaskedLM"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            TupeReplacedTokenDetector(generator, discriminator, **arguments)
    TupeTokenDiscriminator(plain).save_to_preset(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="must have its generator in the folder"):
        TupeReplacedTokenDetector.from_preset(str(tmp_path))
