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


def masked_lm(case=TUPE_R, dtype="float64", **kwargs):
    model = TupeMaskedLM(encoder(case, dtype, **kwargs))
    scramble(model.weights)
    return model


def classifier(dtype="float64", scale=0.4, **kwargs):
    model = TupeTextClassifier(
        encoder(TUPE_R, dtype, scale=scale, num_layers=1), num_classes=3, **kwargs
    )
    if scale:
        scramble(model.weights)
    return model


def masked_inputs(batch=3, length=7, slots=2, seed=0):
    where = np.random.default_rng(seed).integers(0, length, size=(batch, slots))
    return {**inputs(random_ids(batch, length, seed)), "mask_positions": where.astype("int32")}


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
@pytest.mark.parametrize(
    "name", ["masked_lm", "span_extractor", "text_classifier", "text_embedder"]
)
def test_the_encoder_of_a_preset_serves_other_tasks(name, pre_trained, tmp_path, tensorflow):
    model = model_of(pre_trained)
    model.save_to_preset(str(tmp_path))
    tuned = TASKS[name].from_preset(str(tmp_path), preprocessor=None, **TASKS[name].example_options)
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


# Masked language modeling


def test_masked_lm_applies_its_head_to_the_last_hidden_states():
    model = masked_lm()
    given = masked_inputs()
    hidden_states = model.backbone({k: given[k] for k in ("token_ids", "padding_mask")})
    wanted = model.head(hidden_states["sequence_output"], mask_positions=given["mask_positions"])
    np.testing.assert_allclose(
        answer(model, given), ops.convert_to_numpy(wanted), atol=in_float64(1e-12)
    )
    assert model.head.token_embedding is model.backbone.token_embedding
    assert len(model.weights) == len(model.backbone.weights) + 5


@NO_POOLER
def test_a_batch_without_masked_tokens_has_a_finite_loss_and_changes_nothing():
    model = masked_lm(dtype="float32")
    model.compile(keras.optimizers.SGD(1.0))
    before = answer(model, masked_inputs())
    nothing = np.zeros((3, 2), "float32")
    loss = model.train_on_batch(masked_inputs(), random_ids(3, 2), sample_weight=nothing)
    assert np.ravel(loss)[0] == 0
    np.testing.assert_array_equal(answer(model, masked_inputs()), before)


# The last block in training


def short_and_whole(name, monkeypatch, normalize_first):
    """Returns, for training as it is and on all of the encoder's outputs: outputs and new weights
    of a step, and the lengths that the last feed-forward network saw."""
    given = masked_inputs(length=7, slots=2)
    found = []
    for whole in (False, True):
        kwargs = {"num_layers": 2, "normalize_first": normalize_first}
        backbone = encoder(TUPE_R, "float64", **kwargs)
        if name == "masked_lm":
            model, labels = TupeMaskedLM(backbone), random_ids(3, 2, seed=3)
        else:
            model, labels = TupeTextClassifier(backbone, 3, dropout=0.0), np.array([0, 1, 2])
            given = {name: given[name] for name in ("token_ids", "padding_mask")}
        scramble(model.weights)
        if whole:
            monkeypatch.setattr(type(model), "_trained", lambda *_: None)
        last, seen = backbone.get_layer("block_1").output_dense, []

        def call(x, call=last.call, seen=seen, **kwargs):
            seen.append(tuple(x.shape))
            return call(x, **kwargs)

        monkeypatch.setattr(last, "call", call)
        outputs = ops.convert_to_numpy(model(given, training=True))
        lengths = {shape[1] for shape in seen}
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(1.0), loss=loss, run_eagerly=True)
        model.train_on_batch(given, labels)
        weights = [ops.convert_to_numpy(weight) for weight in model.trainable_weights]
        found.append((outputs, weights, lengths))
    return found


@NO_POOLER
@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("name", ["masked_lm", "classifier"])
def test_training_computes_no_more_of_the_last_block_than_is_needed(
    name, normalize_first, monkeypatch
):
    (outputs, weights, lengths), whole = short_and_whole(name, monkeypatch, normalize_first)
    np.testing.assert_allclose(outputs, whole[0], atol=in_float64(1e-12))
    for got, wanted in zip(weights, whole[1], strict=True):
        np.testing.assert_allclose(got, wanted, atol=in_float64(1e-11))
    assert lengths == {2 if name == "masked_lm" else 1}
    assert whole[2] == {7}


@pytest.mark.parametrize("name", ["masked_lm", "classifier"])
def test_every_dropout_of_the_encoder_drops_in_training(name):
    backbone = encoder(TUPE_R, "float64", num_layers=2, dropout=0.5)
    model = (
        TupeMaskedLM(backbone)
        if name == "masked_lm"
        else TupeTextClassifier(backbone, 3, dropout=0.5)
    )
    scramble(model.weights)
    dropouts = [layer for layer in model._flatten_layers() if hasattr(layer, "seed_generator")]
    before = [ops.convert_to_numpy(layer.seed_generator.state) for layer in dropouts]
    model(masked_inputs() if name == "masked_lm" else inputs(random_ids(3, 7)), training=True)
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
    np.testing.assert_allclose(
        ops.convert_to_numpy(found["sequence_output"]), wanted, atol=in_float64(1e-12)
    )
    symbolic = {name: keras.Input((7,), dtype="int32") for name in given}
    spec = model(symbolic, output_positions=keras.Input((2,), dtype="int32"))
    assert spec["sequence_output"].shape == (None, 2, model.hidden_dim)


@pytest.mark.parametrize(
    ("where", "error", "sentence"),
    [
        (np.array([[7], [0], [0]]), ValueError, "`output_positions` must lie in"),
        (np.array([[-1], [0], [0]]), ValueError, "`output_positions` must lie in"),
        (np.array([[1], [0]]), ValueError, "must have the shape .batch, number of positions"),
        (np.array([1, 0, 0]), ValueError, "must have the shape .batch, number of positions"),
        (np.array([[0.5], [0], [0]]), TypeError, "`output_positions` must hold integers"),
    ],
)
def test_output_positions_that_are_none_are_refused(where, error, sentence):
    with pytest.raises(error, match=sentence):
        encoder(TUPE_R, "float64", num_layers=1)(inputs(random_ids(3, 7)), output_positions=where)


# Classification


def test_the_classifier_is_a_linear_layer_over_the_pooled_output():
    model = classifier(dropout=0.5)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    pooled = ops.convert_to_numpy(model.backbone(given)["pooled_output"])
    dense = model.get_layer("logits")
    kernel, bias = (ops.convert_to_numpy(weight) for weight in (dense.kernel, dense.bias))
    np.testing.assert_allclose(answer(model, given), pooled @ kernel + bias, atol=in_float64(1e-12))
    trained = ops.convert_to_numpy(model(given, training=True))
    assert np.abs(trained - answer(model, given)).max() > 1e-3


def test_slots_of_the_optimizer_are_there_before_the_first_step_is_traced():
    model = classifier("float32", scale=None)
    model.compile("adamw", "mse")
    model.make_train_function()
    assert model.optimizer.built


def test_fit_evaluate_and_predict_take_arrays(tensorflow):
    model = TupeTextClassifier(encoder(Case("none"), "float32", num_layers=1), num_classes=3)
    model.compile(jit_compile=False)  # else as it comes
    given, labels = inputs(random_ids(6, 7)), np.array([0, 1, 2, 0, 1, 2])
    history = model.fit(given, labels, batch_size=4, epochs=2, verbose=0).history
    assert len(history["loss"]) == 2
    assert np.isfinite(history["loss"]).all()
    model.evaluate(given, labels, verbose=0)
    np.testing.assert_allclose(
        model.predict(given, verbose=0), answer(model, given), rtol=0, atol=1e-5
    )


def test_an_activation_turns_logits_into_chances_and_is_saved(tmp_path):
    model = classifier("float32", activation="softmax")
    given = inputs(random_ids(3, 7))
    np.testing.assert_allclose(answer(model, given).sum(-1), 1, atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(answer(loaded, given), answer(model, given))
