"""Encoders from SavedModels, used and trained inside Keras 3 models."""

import keras
import numpy as np
import pytest
from saved_encoders import (
    IDS,
    LENGTH,
    MASK,
    TYPES,
    VOCABULARY,
    WIDTH,
    classifier,
    fit,
    rows,
    write_other_encoder,
)

from keras_tupe import SavedEncoder

# No gradient by mathematics: adds one number to a whole row of logits, which softmax ignores.
DEAD = ("attention/key/bias",)


@pytest.fixture
def other(tensorflow, tmp_path):
    """The folder of an encoder that was not made here."""
    write_other_encoder(tmp_path / "other")
    return tmp_path / "other"


def of_backbone(backbone, inputs):
    names = {"token_ids": IDS, "padding_mask": MASK, "segment_ids": TYPES}
    return backbone({name: inputs[key].astype("int32") for name, key in names.items()})


def assert_same(got, wanted, **tolerance):
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, **{"atol": 1e-5, **tolerance})


# Use


@pytest.mark.parametrize("length", [1, 4, LENGTH])
def test_answers_are_those_of_the_model(saved, length):
    model, _, encoder = saved
    inputs = rows(length=length)
    outputs = encoder(inputs)
    assert_same(outputs, of_backbone(model.backbone, inputs))
    np.testing.assert_array_equal(outputs["default"], outputs["pooled_output"])
    assert {value.dtype.name for value in outputs.values()} == {"float32"}


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_integers_of_any_width_boolean_masks_and_one_segment(saved, tensorflow, dtype):
    encoder, inputs = saved[2], rows()
    zeros = encoder({**inputs, TYPES: np.zeros_like(inputs[TYPES])})
    short = {IDS: inputs[IDS].astype(dtype), MASK: inputs[MASK].astype("bool")}
    assert_same(encoder(short), zeros, atol=0)
    tensors = {name: tensorflow.constant(value) for name, value in short.items()}
    assert_same(encoder(tensors), zeros, atol=0)
    assert np.abs(encoder(inputs)["default"] - zeros["default"]).max() > 1e-3


@pytest.mark.parametrize("length", [None, 5])
@pytest.mark.parametrize("batch", [None, 3])
def test_symbolic_outputs_have_the_shapes_of_real_ones(saved, other, batch, length):
    inputs = {
        name: keras.Input(batch_shape=(batch, length), dtype="int64", name=name)
        for name in (IDS, MASK)
    }
    for encoder, width in ((saved[2], WIDTH), (SavedEncoder(other), 4)):
        outputs = encoder(inputs)
        assert outputs["sequence_output"].shape == (batch, length, width)
        assert outputs["pooled_output"].shape == outputs["default"].shape == (batch, width)
        assert outputs["default"].dtype == "float32"
    assert [x.shape for x in outputs["encoder_outputs"]] == [(batch, length, 4)] * 2
    given = {name: value for name, value in rows(3, 5).items() if name != TYPES}
    predicted, direct = keras.Model(inputs, outputs)(given), encoder(given)
    np.testing.assert_array_equal(predicted["encoder_outputs"][1], direct["sequence_output"])
    np.testing.assert_array_equal(predicted["default"], direct["default"])


def test_masked_words_are_predicted_on_request(saved):
    model, folder, _ = saved
    encoder, inputs = SavedEncoder(folder, mlm=True), rows()
    positions = np.array([[1, 6], [0, 0], [3, 2], [5, 5], [2, 0], [4, 1]])
    outputs = encoder({**inputs, "masked_lm_positions": positions})
    assert_same(outputs, of_backbone(model.backbone, inputs))
    names = {"token_ids": IDS, "padding_mask": MASK, "segment_ids": TYPES}
    given = {name: inputs[key].astype("int32") for name, key in names.items()}
    logits = model({**given, "mask_positions": positions.astype("int32")})
    np.testing.assert_allclose(outputs["mlm_logits"], logits, atol=3e-5)
    assert len(encoder.trainable_weights) == len(model.trainable_weights)
    assert encoder.get_config().items() >= {"path": str(folder), "mlm": True}.items()
    symbolic = {name: keras.Input((LENGTH,), dtype="int32") for name in (IDS, MASK)}
    symbolic["masked_lm_positions"] = keras.Input((4,), dtype="int32")
    assert encoder(symbolic)["mlm_logits"].shape == (None, 4, VOCABULARY)


def test_weights_are_the_saved_models_own_variables(saved):
    model, _, encoder = saved
    assert len(encoder.variables) == len(model.backbone.variables)
    for weight, of_model in zip(
        encoder.trainable_weights, model.backbone.trainable_variables, strict=True
    ):
        assert weight.path == f"reader/{of_model.path}"
        np.testing.assert_array_equal(weight, of_model)
    before = encoder(rows())
    kernel = next(w for w in encoder.weights if w.path.endswith("pooled_dense/kernel"))
    kernel.assign(2 * kernel)
    after = encoder(rows())
    kernel.assign(kernel / 2)  # exactly what it was
    np.testing.assert_array_equal(after["sequence_output"], before["sequence_output"])
    assert np.abs(after["pooled_output"] - before["pooled_output"]).max() > 1e-2


def test_names_of_weights_differ_even_if_the_saved_model_has_one_twice(other):
    encoder = SavedEncoder(other, name="bag")
    assert [w.path for w in encoder.weights][:2] == ["bag/table", "bag/dense/kernel"]
    assert len({w.path for w in encoder.weights}) == len(encoder.weights) == 3
    (calls,) = encoder.non_trainable_weights
    assert calls.path.startswith("bag/table_")


# Training


RATES = {"adam": 0.02, "adamw": 0.02, "sgd": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "jit_compile"), [*((name, False) for name in RATES), ("adam", True)]
)
def test_fine_tuning_lowers_the_loss_and_changes_every_weight(saved, optimizer, jit_compile):
    model = classifier(SavedEncoder(saved[1]))
    config = {"learning_rate": RATES[optimizer]}
    optimizer = keras.optimizers.get({"class_name": optimizer, "config": config})
    before, after, same = fit(model, optimizer, rows(), epochs=15, jit_compile=jit_compile)
    assert after < 0.8 * before
    assert all(path.endswith(DEAD) for path in same), same
    assert len(model.trainable_weights) == len(saved[0].backbone.trainable_variables) + 2


def test_an_encoder_of_others_is_fine_tuned(other):
    model = classifier(SavedEncoder(other))
    before, after, same = fit(model, keras.optimizers.Adam(0.1), rows(), epochs=15)
    assert after < 0.8 * before
    assert same == []


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float64"])
def test_precision_policies_leave_the_encoder_as_it_was_exported(other, policy):
    expected = SavedEncoder(other)(rows())["default"]
    encoder = SavedEncoder(other, dtype=policy)
    output = encoder(rows())["default"]
    assert output.dtype == "float32"
    assert {weight.dtype for weight in encoder.trainable_weights} == {"float32"}
    np.testing.assert_array_equal(output, expected)


def test_a_frozen_encoder_keeps_its_weights_and_can_be_thawed(other):
    encoder = SavedEncoder(other, trainable=False)
    model = classifier(encoder)
    before = [weight.numpy() for weight in encoder.weights]
    assert len(model.trainable_weights) == 2
    assert fit(model, "adam", rows())[2] == []
    for weight, old in zip(encoder.weights, before, strict=True):
        np.testing.assert_array_equal(weight, old)
    encoder.trainable = True
    assert len(model.trainable_weights) == 4
    assert fit(model, "adam", rows())[2] == []


def test_training_turns_dropout_on(saved):
    encoder = saved[2]
    quiet, loud = (encoder(rows(), training=flag)["default"] for flag in (False, True))
    np.testing.assert_array_equal(encoder(rows())["default"], quiet)
    assert np.abs(quiet - loud).max() > 1e-3


def test_a_frozen_encoder_runs_as_outside_of_training(other):
    encoder = SavedEncoder(other)
    quiet, loud = (encoder(rows(), training=flag)["default"] for flag in (False, True))
    np.testing.assert_array_equal(2 * loud, quiet)
    encoder.trainable = False
    np.testing.assert_array_equal(encoder(rows(), training=True)["default"], quiet)


def test_regularization_losses_count_once_and_only_while_the_encoder_is_trainable(other):
    encoder = SavedEncoder(other)
    model = classifier(encoder)
    kernel = encoder.trainable_weights[1]
    for _ in range(2):
        model(rows())
        (loss,) = model.losses
        np.testing.assert_allclose(loss, 0.1 * (kernel.numpy() ** 2).sum(), rtol=1e-6)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    total = model.evaluate(rows(), np.zeros(6), verbose=0)
    encoder.trainable = False
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert total == pytest.approx(model.evaluate(rows(), np.zeros(6), verbose=0) + float(loss))
    model(rows())
    assert model.losses == []
