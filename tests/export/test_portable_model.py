"""What is converted, and how a runtime's answers are judged."""

import keras
import numpy as np
import pytest
from portable_cases import answers_of_keras, example, model_of
from position_cases import MAX_LENGTH

from keras_tupe.export.portable.function import float32_model
from keras_tupe.export.portable.parity import check_parity, worst_difference

SHAPES = ((2, 1), (1, 4))  # batch, length


def keras_runtime(model, change=lambda name, value, length: value):
    """Returns a stand-in for a runtime: Keras itself, with changes and a length limit."""

    def run(inputs):
        length = inputs["input_word_ids"].shape[1]
        answers = answers_of_keras(model, inputs)
        return {name: change(name, value, length) for name, value in answers.items()}

    return run


@pytest.mark.parametrize("task", ["encoder", "masked_lm", "classifier"])
def test_a_model_in_half_precision_is_copied_to_float32_with_its_weights(task):
    half = model_of("tupe_a", task, "mixed_bfloat16", num_layers=1)
    single = model_of("tupe_a", task, "float32", num_layers=1)
    for weight, value in zip(single.weights, half.weights, strict=True):
        weight.assign(value)
    copy = float32_model(half)
    assert copy is not half
    assert {layer.dtype_policy.name for layer in copy.layers} == {"float32"}
    inputs = example(half, 7)
    answers, expected = answers_of_keras(copy, inputs), answers_of_keras(single, inputs)
    for name in expected:
        np.testing.assert_array_equal(answers[name], expected[name])
    assert float32_model(single) is single


def test_a_classifiers_copy_keeps_its_activation():
    backbone = model_of("none", dtype="float64", num_layers=1)
    classifier = type(model_of("none", "classifier"))(backbone, 4, activation="sigmoid")
    copy = float32_model(classifier)
    assert copy.num_classes == 4
    assert copy.activation is keras.activations.sigmoid or copy.activation == "sigmoid"


def test_the_worst_difference_is_relative_to_large_values_and_named():
    model = model_of("none", num_layers=1)
    exact = worst_difference(model, keras_runtime(model), SHAPES)
    assert exact.value == 0

    def change(name, value, length):
        return value + 3e-3 if (name, length) == ("pooled_output", 4) else value

    worst = worst_difference(model, keras_runtime(model, change), SHAPES)
    assert (worst.output, worst.length) == ("pooled_output", 4)
    assert worst.value == pytest.approx(3e-3, rel=1e-3)
    assert "in pooled_output at length=4, batch=" in str(worst)


@pytest.mark.parametrize(
    "change",
    [
        lambda name, value, length: value * np.nan,
        lambda name, value, length: value[:1],
        lambda name, value, length: value.astype("float64"),
        lambda name, value, length: value + 2e-4 * np.maximum(1, np.abs(value)),
    ],
    ids=["not a number", "fewer rows", "another dtype", "too far"],
)
def test_wrong_answers_fail_the_comparison(change):
    model = model_of("none", num_layers=1)
    with pytest.raises(RuntimeError, match=r"nothing was written\. Expected .* Received: .* in "):
        check_parity(model, keras_runtime(model, change))


def test_a_runtime_that_takes_more_tokens_than_the_model_has_positions_for_fails():
    model = model_of("shaw", num_layers=1)

    def run(inputs):  # a table of distances would answer with its last row
        length = inputs["input_word_ids"].shape[1]
        if length > MAX_LENGTH:
            return {"sequence_output": np.zeros((1, length, 10), "float32")}
        return keras_runtime(model)(inputs)

    with pytest.raises(RuntimeError, match=r"positions for 17 tokens and does not refuse more"):
        check_parity(model, run)
    assert check_parity(model, keras_runtime(model)).value == 0
