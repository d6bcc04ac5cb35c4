"""What every task promises, and the pre-training and the fine-tuning model."""

import keras
import keras_hub
import numpy as np
import pytest
from keras import ops
from position_cases import Case, encoder, inputs, random_ids, scramble
from tolerances import in_float64

from keras_tupe.models import TupeMaskedLM, TupeMaskedPairLM, TupeTextClassifier
from keras_tupe.tasks import TASKS
from training.check.promise import BROKEN, Check
from training.check.task import PROMISES, model_of
from training.check.task import inputs as inputs_of

TUPE_R = Case("tupe_r")
# The pooler is no part of masked language modeling.
NO_POOLER = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables:UserWarning")


def made(name, dtype="float64", num_layers=1, **kwargs):
    """Returns a scrambled model without dropout, or with one for all, inputs and labels."""
    backbone = encoder(TUPE_R, dtype, num_layers=num_layers, **kwargs)
    given, labels = inputs(random_ids(3, 7)), np.array([0, 1, 2])
    if name == "masked_lm":
        model, labels = TupeMaskedLM(backbone), random_ids(3, 2, seed=3)
        given["mask_positions"] = random_ids(3, 2).astype("int32") % 7
    else:
        model = TupeTextClassifier(backbone, 3, dropout=kwargs.get("dropout", 0.0))
    scramble(model.weights)
    return model, given, labels


def softmax(logits):
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


def answer(model, given):
    return ops.convert_to_numpy(ops.cast(model(given), "float64"))


# Every task

# Training is compiled for each, and so is writing, which has tests of its own.
FAST = {
    "training on examples": {"masked_lm"},
    "questions": TASKS.keys() - {"causal_lm", "seq2seq_lm"},
}
FAST["scores"] = FAST["questions"]
PROMISED = [
    pytest.param(name, x, marks=[] if name in FAST.get(x, TASKS) else [pytest.mark.slow])
    for name in TASKS
    for x in PROMISES
]


@NO_POOLER
@pytest.mark.filterwarnings("ignore::UserWarning:keras")
@pytest.mark.parametrize(("name", "promise"), PROMISED)
def test_a_task_keeps_its_promises(name, promise, tensorflow):
    found = Check(promise, PROMISES[promise], (TASKS[name],)).outcome()
    assert found.result != BROKEN, found.reason


# `test_replaced_tokens.py` has the losses of two of them.
OF_OTHER_LOSSES = {"replaced_token_detector", "token_discriminator", "text_embedder"}


def kerashub_class(task):
    return next(base for base in task.__mro__ if base.__module__.startswith("keras_hub."))


@pytest.mark.parametrize(
    "name",
    [name for name, task in TASKS.items() if kerashub_class(task) is not keras_hub.models.Task],
)
def test_kerashubs_class_loads_a_preset_of_ours(name, tmp_path, tensorflow):
    model = model_of(TASKS[name])
    model.save_to_preset(str(tmp_path))
    loaded = kerashub_class(type(model)).from_preset(str(tmp_path))
    assert type(loaded) is type(model)
    assert type(loaded.preprocessor) is type(model.preprocessor)
    given = inputs_of(model)
    np.testing.assert_array_equal(answer(loaded, given), answer(model, given))


@pytest.mark.parametrize("pre_trained", [TupeMaskedLM, TupeMaskedPairLM])
def test_the_encoder_of_a_preset_serves_other_tasks(pre_trained, tmp_path, tensorflow):
    model = model_of(pre_trained)
    model.save_to_preset(str(tmp_path))
    for name in ("masked_lm", "span_extractor", "text_classifier", "text_embedder"):
        given = {"preprocessor": None, **TASKS[name].example_options}
        tuned = TASKS[name].from_preset(str(tmp_path), **given)
        for got, wanted in zip(tuned.backbone.weights, model.backbone.weights, strict=True):
            np.testing.assert_array_equal(ops.convert_to_numpy(got), ops.convert_to_numpy(wanted))


@NO_POOLER
@pytest.mark.parametrize("name", sorted(TASKS.keys() - OF_OTHER_LOSSES))
def test_the_loss_is_the_sum_of_weighted_means_of_cross_entropies(name, tensorflow):
    model, random = model_of(TASKS[name]), np.random.default_rng(3)
    model.preprocessor, given, labels, weights, wanted = None, inputs_of(model), {}, {}, 0
    outputs = model(given)
    for output, logits in (outputs if isinstance(outputs, dict) else {"": outputs}).items():
        logits = ops.convert_to_numpy(logits).astype("float64")
        labels[output] = random.integers(0, 2, logits.shape[:-1])  # of a span, in the shortest row
        weights[output] = random.choice([0, 0.5, 1], logits.shape[:-1]).astype("float32")
        chosen = np.take_along_axis(softmax(logits), labels[output][..., None], axis=-1)[..., 0]
        wanted -= (np.log(chosen) * weights[output]).sum() / weights[output].sum()
    if not isinstance(outputs, dict):
        labels, weights = labels[""], weights[""]
    model.compile()
    found = model.test_on_batch(given, labels, weights, return_dict=True)
    assert found["loss"] == pytest.approx(wanted, rel=1e-4)


@NO_POOLER
def test_a_batch_without_masked_tokens_has_a_finite_loss_and_changes_nothing():
    model, given, labels = made("masked_lm", "float32")
    model.compile(keras.optimizers.SGD(1.0))
    before = answer(model, given)
    loss = model.train_on_batch(given, labels, sample_weight=np.zeros((3, 2), "float32"))
    assert np.ravel(loss)[0] == 0
    np.testing.assert_array_equal(answer(model, given), before)


# The last block in training


def trained_step(name, monkeypatch, whole, normalize_first):
    """Returns the outputs of a training step, the new weights, and which lengths the last
    feed-forward network saw, as it is or on all of the encoder's outputs."""
    model, given, labels = made(name, num_layers=2, normalize_first=normalize_first)
    if whole:
        monkeypatch.setattr(type(model), "_trained", lambda *_: None)
    last, seen = model.backbone.get_layer("block_1").output_dense, []

    def call(x, call=last.call, **kwargs):
        seen.append(tuple(x.shape))
        return call(x, **kwargs)

    monkeypatch.setattr(last, "call", call)
    outputs = ops.convert_to_numpy(model(given, training=True))
    lengths = {shape[1] for shape in seen}
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1.0), loss=loss, run_eagerly=True)
    model.train_on_batch(given, labels)
    return [outputs, *map(ops.convert_to_numpy, model.trainable_weights)], lengths


@NO_POOLER
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize(("name", "places"), [("masked_lm", 2), ("classifier", 1)])
def test_training_computes_no_more_of_the_last_block_than_is_needed(
    name, places, normalize_first, monkeypatch
):
    found, lengths = trained_step(name, monkeypatch, False, normalize_first)
    wanted, all_lengths = trained_step(name, monkeypatch, True, normalize_first)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=in_float64(1e-11))
    assert (lengths, all_lengths) == ({places}, {7})


@pytest.mark.parametrize("name", ["masked_lm", "classifier"])
def test_every_dropout_of_the_encoder_drops_in_training(name):
    model, given, _ = made(name, num_layers=2, dropout=0.5)
    dropouts = [layer for layer in model._flatten_layers() if hasattr(layer, "seed_generator")]
    before = [ops.convert_to_numpy(layer.seed_generator.state) for layer in dropouts]
    model(given, training=True)
    after = [ops.convert_to_numpy(layer.seed_generator.state) for layer in dropouts]
    assert len(dropouts) == 7 + (name == "classifier")
    assert all((x != y).any() for x, y in zip(before, after, strict=True))


def test_the_encoder_answers_at_the_positions_that_are_asked_for():
    model, given = encoder(TUPE_R, "float64"), inputs(random_ids(3, 7), lengths=[7, 4, 1])
    where = np.array([[6, 0], [3, 3], [0, 0]], "int32")
    found = model(given, output_positions=where)
    whole = ops.convert_to_numpy(model(given)["sequence_output"])
    wanted = np.take_along_axis(whole, where[..., None], axis=1)
    assert list(found) == ["sequence_output"]
    np.testing.assert_allclose(found["sequence_output"], wanted, atol=in_float64(1e-12))
    symbolic = {name: keras.Input((7,), dtype="int32") for name in given}
    spec = model(symbolic, output_positions=keras.Input((2,), dtype="int32"))
    assert spec["sequence_output"].shape == (None, 2, model.hidden_dim)
    for where, sentence in (
        ([[7], [0], [0]], "must lie in"),
        ([[-1], [0], [0]], "must lie in"),
        ([[1], [0]], "must have the shape .batch, number of positions"),
        ([1, 0, 0], "must have the shape .batch, number of positions"),
        ([[0.5], [0], [0]], "must hold integers"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"`output_positions` {sentence}"):
            model(given, output_positions=np.array(where))


# Classification


def test_the_classifier_is_a_linear_layer_over_the_pooled_output():
    model, given, _ = made("classifier", dropout=0.5)
    pooled = ops.convert_to_numpy(model.backbone(given)["pooled_output"])
    kernel, bias = map(ops.convert_to_numpy, model.get_layer("logits").weights)
    np.testing.assert_allclose(answer(model, given), pooled @ kernel + bias, atol=in_float64(1e-12))
    trained = ops.convert_to_numpy(model(given, training=True))
    assert np.abs(trained - answer(model, given)).max() > 1e-3
    model.compile("adamw", "mse")  # slots are there before the first step is traced
    model.make_train_function()
    assert model.optimizer.built


def test_an_activation_turns_logits_into_chances_and_is_saved(tmp_path):
    model = TupeTextClassifier(encoder(TUPE_R, "float32", num_layers=1), 3, activation="softmax")
    given, labels = inputs(random_ids(6, 7)), np.array([0, 1, 2, 0, 1, 2])
    np.testing.assert_allclose(answer(model, given).sum(-1), 1, atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(answer(loaded, given), answer(model, given))
    found = loaded.predict(given, verbose=0)
    np.testing.assert_allclose(found, answer(model, given), rtol=0, atol=1e-5)
    loaded.compile(jit_compile=False)
    history = loaded.fit(given, labels, batch_size=4, epochs=2, verbose=0).history["loss"]
    assert np.isfinite([*history, *loaded.evaluate(given, labels, verbose=0)]).all()
