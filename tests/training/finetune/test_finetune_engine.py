"""Fine-tuning of one model: learns, repeats to the bit, and asks each row once."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone, TupeTextClassifier
from keras_tupe.data import Padded
from training.command.log import read_log
from training.finetune.engine import FineTuner, Recipe
from training.finetune.tasks import glue as finetune_glue_settings
from training.finetune.tasks import squad as finetune_squad_settings

RANDOM = np.random.default_rng(1)
TOKENS = [RANDOM.integers(5, 40, RANDOM.integers(2, 16)) for _ in range(150)]
CLASSES = np.array([row[0] % 2 for row in TOKENS], "int32")


def make(num_classes=2):
    backbone = TupeBackbone(40, 1, 2, 16, 32, "absolute", max_sequence_length=32, dropout=0.1)
    return TupeTextClassifier(backbone, num_classes)


def rows(labels=CLASSES, batch_size=16):
    return Padded({"token_ids": TOKENS}, labels, pad_id=0, batch_size=batch_size, seed=0)


def test_a_model_learns_writes_its_log_and_a_second_time_the_same_bits(tmp_path):
    tuner, found = FineTuner(xla="off"), []
    seen = []
    for name in ("first", "second"):
        model = tuner.fit(
            make,
            rows(),
            Recipe(2e-2, epochs=8, batch_size=16, seed=5),
            tmp_path / name,
            progress=lambda step, loss: seen.append(step),
        )
        found.append([weight.copy() for weight in model.get_weights()])
    answers = np.array([x.argmax() for x in tuner.predict(model, rows(batch_size=40))])
    assert np.mean(answers == CLASSES) > 0.9
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    log = read_log(tmp_path / "first" / "log.csv")
    assert log["step"][-1] == 80
    assert log["learning_rate"][0] == 2e-2  # after the four steps of the warm-up
    assert seen == [*range(1, 81)] * 2
    assert log["loss"][-1] < log["loss"][0]


@pytest.mark.parametrize(
    "settings", [finetune_glue_settings.Settings, finetune_squad_settings.Settings]
)
def test_a_command_s_settings_reach_the_recipe_and_the_precision(settings):
    found = {
        field.name: number
        for number, field in enumerate(dataclasses.fields(Recipe), 1)
        if field.name not in ("beta_1", "beta_2")
    }
    names = {field.name for field in dataclasses.fields(settings)}
    given = settings(**{name: value for name, value in found.items() if name in names})
    rest = {name: value for name, value in found.items() if name not in names}
    assert rest.keys() <= {"learning_rate", "seed"}
    assert vars(Recipe.of(given, **rest)) == {**found, "beta_1": 0.9, "beta_2": 0.999}
    try:
        FineTuner.of(dataclasses.replace(given, precision="mixed_bfloat16"))
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")


def test_predictions_are_those_of_the_model_row_by_row():
    model = make()
    found = FineTuner().predict(model, rows())
    for number in (0, 60, 149):
        ids = TOKENS[number][np.newaxis]
        alone = model({"token_ids": ids, "padding_mask": np.ones_like(ids)})
        alone = keras.ops.convert_to_numpy(alone)[0]
        np.testing.assert_allclose(found[number], alone, atol=1e-5)


def test_outputs_for_each_token_are_as_long_as_the_row():
    backbone = make().backbone
    per_token = keras.Model(
        backbone.input, keras.ops.transpose(backbone.output["sequence_output"], (0, 2, 1))
    )
    found = FineTuner().predict(per_token, rows())
    assert [values.shape for values in found] == [(16, len(row)) for row in TOKENS]


@pytest.mark.slow
def test_scores_are_learned_by_squared_errors(tmp_path):
    scores = np.where(CLASSES == 1, 4.0, 1.0).astype("float32")
    tuner = FineTuner()
    model = tuner.fit(
        lambda: make(1), rows(scores), Recipe(5e-3, epochs=12, batch_size=16, seed=5), tmp_path
    )
    found = np.array(tuner.predict(model, rows()))[:, 0]
    assert np.mean((found - scores) ** 2) < 0.5 * scores.var()


def test_a_loss_that_counts_filled_up_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="mean_with_sample_weight"):
        FineTuner().fit(make, rows(), Recipe(1e-3, 1), tmp_path, loss=keras.losses.Hinge())


def test_a_model_of_unknown_kind_needs_a_loss(tmp_path):
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    with pytest.raises(ValueError, match="`loss` must be given"):
        FineTuner().fit(lambda: model, rows(), Recipe(1e-3, 1), tmp_path)


def test_several_workers_are_refused(monkeypatch):
    monkeypatch.setattr(
        "training.finetune.engine.make_machine", lambda *_: type("Machine", (), {"num_workers": 2})
    )
    with pytest.raises(ValueError, match="one machine"):
        FineTuner()
