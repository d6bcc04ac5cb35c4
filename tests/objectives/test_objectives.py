"""The registry of objectives: what its records say, and that their parts fit each other."""

import math

import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone, data, objectives
from keras_tupe.objectives.causal_lm import PER_CHARACTER, PER_TOKEN

LENGTH, VOCABULARY = 9, 23
NAMES = sorted(objectives.OBJECTIVES)


class MadeUp:
    """As much of `PreparedRows` as the rule of an objective asks for."""

    class vocabulary:  # noqa: N801
        size, mask_id, pad_id, end_id, special_ids = VOCABULARY, 4, 0, 3, (0, 1, 2, 3, 4)

    masking = data.PreparedRows.masking
    next_tokens = data.PreparedRows.next_tokens


def batch(name):
    record = objectives.get(name)
    rule = record.rule(MadeUp(), dict(record.options))
    source = np.random.default_rng(0).integers(5, VOCABULARY, (6, LENGTH))
    source[:, 0], source[:, -1] = 2, 3
    rows = data.Rows(source, rule, batch_size=4, seed=1)
    return record, rule, rows.batch(0)


def test_there_are_these_and_an_unknown_name_is_told_the_nearest():
    assert NAMES == ["causal_lm", "masked_lm"]
    with pytest.raises(ValueError, match="Did you mean 'causal_lm'.*Received: objective='casual_"):
        objectives.get("casual_lm")
    with pytest.raises(ValueError, match="Received: objective=3"):
        objectives.get(3)


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_of_an_objective_are_what_its_model_and_its_loss_take(name):
    record, rule, (inputs, labels, weights) = batch(name)
    backbone = TupeBackbone(
        VOCABULARY, 1, 2, 8, 12, attention_pattern=record.attention_pattern, dropout=0.0
    )
    model = record.task(backbone)
    model.compile()
    outputs = keras.ops.convert_to_numpy(model(inputs)).astype("float64")
    assert outputs.shape == (*labels.shape, VOCABULARY)
    shares = np.exp(outputs) / np.exp(outputs).sum(-1, keepdims=True)
    chosen = -np.log(np.take_along_axis(shares, labels[..., None], axis=-1)[..., 0])
    loss = float(model.loss(labels, outputs, weights))
    np.testing.assert_allclose(loss, (chosen * weights).sum() / weights.sum(), rtol=1e-5)
    slots = record.num_predictions(LENGTH, dict(record.options))
    assert slots == rule.num_slots(LENGTH) == labels.shape[1]
    assert record.is_causal in (None, backbone.is_causal)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_what_tables_need(name):
    record = objectives.get(name)
    for text in (record.summary, record.source, record.predictions, record.accuracy):
        assert isinstance(text, str)
        assert text
    assert issubclass(record.task, keras.Model)
    assert record.task.preprocessor_cls is not None
    assert all(isinstance(x, float) for x in record.numbers(2.0, 4.0).values())


def test_perplexities_are_of_tokens_and_of_characters():
    record = objectives.get("causal_lm")
    numbers = record.numbers(2.0, 4.0)
    assert numbers == {PER_TOKEN: math.exp(2.0), PER_CHARACTER: math.exp(0.5)}
    assert math.isfinite(record.numbers(1e9, 4.0)[PER_TOKEN])
    assert objectives.get("masked_lm").numbers(2.0, 4.0) == {}
