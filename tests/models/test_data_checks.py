"""Data that a task cannot be trained on are told in a sentence."""

import keras
import numpy as np
import pytest

import keras_tupe
from keras_tupe.trainer import Trainer

IDS = np.full((4, 3), 7, "int32")
ONES = np.ones_like(IDS)
INPUTS = {"token_ids": IDS, "padding_mask": ONES}
LABELS = np.array([0, 1, 0, 1])


def backbone(**kwargs):
    return keras_tupe.TupeBackbone(50, 1, 2, 8, 16, max_sequence_length=3, **kwargs)


@pytest.fixture(scope="module")
def tasks():
    classifier = keras_tupe.TupeTextClassifier(backbone(num_segments=2), 2)
    return {
        "classifier": classifier,
        "masked_lm": keras_tupe.TupeMaskedLM(backbone()),
        "extractor": keras_tupe.TupeSpanExtractor(backbone()),
        "plain": keras_tupe.TupeTextClassifier(backbone(), 2),
    }


def with_positions(position):
    return {**INPUTS, "mask_positions": np.full((4, 2), position, "int32")}


SEGMENTS = {"segment_ids": IDS * 0}
BAD = {
    "a short mask": ("plain", {**INPUTS, "padding_mask": ONES[:, :2]}, LABELS, "padding_mask"),
    "a short mask of a task": (
        "classifier",
        {**INPUTS, **SEGMENTS, "padding_mask": ONES[:, :2]},
        LABELS,
        "padding_mask",
    ),
    "a negative id": ("plain", {**INPUTS, "token_ids": -IDS}, LABELS, r"\[0, 50\).*-7"),
    "a large id": ("plain", {**INPUTS, "token_ids": IDS + 43}, LABELS, r"\[0, 50\).*50"),
    "a third segment": (
        "classifier",
        {**INPUTS, "segment_ids": IDS},
        LABELS,
        r"`segment_ids`.*\[0, 2\).*7",
    ),
    "a third class": ("classifier", {**INPUTS, **SEGMENTS}, LABELS + 1, r"\[0, 2\).*2"),
    "a negative class": ("plain", INPUTS, LABELS - 1, r"\[0, 2\).*-1"),
    "a label beyond the pieces": ("masked_lm", with_positions(1), IDS[:, :2] + 43, r"\[0, 50\)"),
    "a position beyond the row": ("masked_lm", with_positions(3), IDS[:, :2], r"\[0, 3\).*3"),
    "a negative position": ("masked_lm", with_positions(-1), IDS[:, :2], r"\[0, 3\).*-1"),
    "a span beyond the row": ("extractor", INPUTS, np.full((4, 2), 3), r"\[0, 3\).*3"),
    "a negative span": ("extractor", INPUTS, np.full((4, 2), -1), r"\[0, 3\).*-1"),
}


@pytest.mark.parametrize("case", BAD)
def test_arrays_are_checked_at_the_door(case, tasks):
    name, inputs, labels, expected = BAD[case]
    model = tasks[name]
    for call in (
        lambda: model.fit(inputs, labels, verbose=0),
        lambda: model.evaluate(inputs, labels, verbose=0),
        lambda: model.train_on_batch(inputs, labels),
        lambda: model.test_on_batch(inputs, labels),
    ):
        with pytest.raises(ValueError, match=expected) as error:
            call()
        assert "\n" not in str(error.value)
    if inputs is not INPUTS and "class" not in case and "label" not in case:
        with pytest.raises(ValueError, match=expected):
            model.predict(inputs, verbose=0)


def test_validation_data_are_checked_before_the_training(tasks):
    with pytest.raises(ValueError, match=r"`labels` must lie in \[0, 2\)"):
        tasks["plain"].fit(INPUTS, LABELS, validation_data=(INPUTS, LABELS + 1), verbose=0)
    assert int(tasks["plain"].optimizer.iterations) == 0


def test_the_trainer_checks_what_its_model_would(tasks):
    trainer = Trainer(tasks["plain"])
    trainer.compile(keras.optimizers.SGD())
    for call in (trainer.fit, trainer.evaluate):
        with pytest.raises(ValueError, match=r"`labels` must lie in \[0, 2\)"):
            call(INPUTS, LABELS + 1, verbose=0)
        with pytest.raises(ValueError, match=r"\[0, 50\).*-7"):
            call({**INPUTS, "token_ids": -IDS}, LABELS, verbose=0)
    assert trainer.step == 0


@pytest.mark.parametrize("position", [3, -1])
def test_a_position_to_predict_is_checked_in_a_call(position, tasks):
    with pytest.raises(ValueError, match=r"`mask_positions` must lie in .*\[0, 3\)"):
        tasks["masked_lm"](with_positions(position))


def data_set(tensorflow, inputs, labels):
    """Returns batches whose shapes TensorFlow does not know."""
    specs = {name: tensorflow.TensorSpec([None, None], "int32") for name in inputs}
    targets = tensorflow.TensorSpec([None] * labels.ndim, "int64")
    return tensorflow.data.Dataset.from_generator(
        lambda: iter([(inputs, labels.astype("int64"))]), output_signature=(specs, targets)
    )


@pytest.mark.parametrize(
    "case",
    ["a short mask", "a negative id", "a large id", "a negative class", "a negative position"],
)
def test_what_stops_a_graph_is_told_in_a_sentence(case, tasks, tensorflow):
    name, inputs, labels, _ = BAD[case]
    model = tasks[name]
    with pytest.raises(ValueError, match="lie in .0, |shape of ids") as error:
        model.evaluate(data_set(tensorflow, inputs, labels), verbose=0)
    assert "\n" not in str(error.value)


def test_labels_of_other_losses_are_not_looked_at():
    model = keras_tupe.TupeTextClassifier(backbone(), 1)
    model.compile(keras.optimizers.SGD(), loss="mse", run_eagerly=True)
    model.train_on_batch(INPUTS, np.array([2.5, -1.0, 0.0, 4.0]))
