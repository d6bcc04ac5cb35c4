"""The registry of objectives: what its records say, and that their parts fit each other."""

import math

import keras
import numpy as np
import pytest

from keras_tupe import data, objectives
from keras_tupe.objectives.causal_lm import PER_CHARACTER, PER_TOKEN
from keras_tupe.trainer import step_flops

LENGTH, VOCABULARY = 9, 23
NAMES = sorted(objectives.OBJECTIVES)


class MadeUp:
    """As much of `PreparedRows` as the rule of an objective asks for."""

    class vocabulary:  # noqa: N801
        size, mask_id, pad_id, start_id, end_id = VOCABULARY, 4, 0, 2, 3
        special_ids, stop_ids = (0, 1, 2, 3, 4), (7,)

    record, directory = {"pairs": "next"}, "made up"


class Source:
    """Rows of two segments, each of a document of its own."""

    length = LENGTH

    def __init__(self):
        self.rows = np.random.default_rng(0).integers(5, VOCABULARY, (6, LENGTH))
        self.rows[:, 0], self.rows[:, 4], self.rows[:, -1] = 2, 3, 3
        self.partners = data.Partners([3] * 6, np.arange(6))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, numbers):
        return self.rows[numbers]


def batch(name):
    record = objectives.get(name)
    rule = record.rule(MadeUp(), dict(record.defaults))
    rows = data.Rows(Source(), rule, batch_size=4, seed=1)
    return record, rows.batch(0)


def test_there_are_these_and_an_unknown_name_is_told_the_nearest():
    assert {"causal_lm", "masked_lm", "next_sentence", "sentence_order"} <= {*NAMES}
    with pytest.raises(ValueError, match="Did you mean 'causal_lm'.*Received: objective='casual_"):
        objectives.get("casual_lm")
    with pytest.raises(ValueError, match="Received: objective=3"):
        objectives.get(3)


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_of_an_objective_are_what_its_model_and_its_loss_take(name):
    record, (inputs, *targets) = batch(name)
    of_some = {
        "attention_pattern": record.needs("attention_pattern", "full"),
        "num_segments": record.needs("num_segments", 0),
    }
    known = {name: of_some[name] for name in of_some if name in record.backbone_arguments}
    backbone = record.backbone_cls(VOCABULARY, *(1, 2, 8, 12), dropout=0.0, **known)
    model = record.make_model(backbone, dict(record.defaults))
    model.compile()
    outputs, losses = model(inputs), model.loss
    if not record.outputs:  # a model with one output
        outputs, losses = {name: outputs}, {name: losses}
        targets = [{name: values} for values in targets]
    labels, weights = targets
    assert [*outputs] == [*losses] == [*labels] == [*weights] == [*(record.outputs or [name])]
    for key, loss in losses.items():
        logits = keras.ops.convert_to_numpy(outputs[key]).astype("float64")
        assert logits.shape[:-1] == labels[key].shape == weights[key].shape
        if not isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
            assert 0 < float(loss(labels[key], logits, weights[key])) < 5
            continue
        shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        chosen = -np.log(np.take_along_axis(shares, labels[key][..., None], axis=-1)[..., 0])
        wanted = (chosen * weights[key]).sum() / weights[key].sum()
        np.testing.assert_allclose(
            float(loss(labels[key], logits, weights[key])), wanted, rtol=1e-5
        )
    labels = next(iter(labels.values()))
    assert next(iter(outputs.values())).shape[-1] == VOCABULARY
    slots = record.num_predictions(LENGTH, dict(record.defaults))
    assert slots == labels.shape[1]
    assert not record.needs("attention_pattern") or backbone.is_causal


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_what_tables_need(name):
    record = objectives.get(name)
    texts = [record.summary, record.source, record.predictions, record.accuracy]
    texts += [
        x for output in record.outputs.values() for x in (output.predictions, output.accuracy)
    ]
    for text in texts:
        assert isinstance(text, str)
        assert text
    assert issubclass(record.task, keras.Model)
    assert record.task.preprocessor_cls is not None
    assert len(keras.tree.flatten(record.metrics())) == max(1, len(record.outputs))
    assert set(record.preset_options) <= set(record.options)
    assert all(isinstance(x, float) for x in record.numbers(2.0, 4.0).values())


def test_operations_of_replaced_tokens_are_those_of_two_encoders():
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 8, "intermediate_dim": 16}
    sizes |= {"vocabulary_size": 50}
    record = objectives.get("replaced_token")
    rows = {"batch_size": 3, "length": 20}
    half = {"num_layers": 2, "hidden_dim": 4, "intermediate_dim": 8, "embedding_dim": 8}
    generator = step_flops(**half, vocabulary_size=50, num_slots=3, **rows)
    # the discriminator: no vocabulary, but a logit of each of 20 tokens
    trunk = {name: sizes[name] for name in ("num_layers", "hidden_dim", "intermediate_dim")}
    discriminator = step_flops(**trunk, vocabulary_size=1, num_slots=20, **rows)
    found = record.step_flops(sizes, 3, 20, {**record.defaults, "generator_share": 0.5})
    assert found == generator + discriminator


def test_operations_of_denoising_are_those_of_encoder_decoder_and_head():
    sizes = {"num_layers": 3, "hidden_dim": 8, "intermediate_dim": 16, "vocabulary_size": 50}
    rows, n, d, m, f = 5, 20, 19, 8, 16
    # matrix products of one step: (rows of the left factor, its columns, columns of the right one)
    block = [(n, m, m)] * 4 + [(n, m, f), (n, f, m), (n, m, n), (n, n, m)]
    products = block * 3
    block = [(d, m, m)] * 4 + [(d, m, f), (d, f, m), (d, m, d), (d, d, m)]
    across = [(d, m, m)] * 2 + [(n, m, m)] * 2 + [(d, m, n), (d, n, m)]
    products += (block + across) * 3 + [(d, m, 50)]
    record = objectives.get("seq2seq")
    wanted = 3 * 2 * rows * sum(a * b * c for a, b, c in products)
    assert record.step_flops(sizes, rows, n, dict(record.defaults)) == wanted
    fewer = record.step_flops({**sizes, "num_decoder_layers": 1}, rows, n, dict(record.defaults))
    assert wanted - fewer == 3 * 2 * rows * 2 * sum(a * b * c for a, b, c in block + across)


def test_perplexities_are_of_tokens_and_of_characters():
    record = objectives.get("causal_lm")
    numbers = record.numbers(2.0, 4.0)
    assert numbers == {PER_TOKEN: math.exp(2.0), PER_CHARACTER: math.exp(0.5)}
    assert math.isfinite(record.numbers(1e9, 4.0)[PER_TOKEN])
    assert objectives.get("masked_lm").numbers(2.0, 4.0) == {}


def test_options_reach_the_rule():
    options = {"infill_share": 0.5, "mean_span": 7.0, "permute_sentences": False}
    rule = objectives.get("seq2seq").rule(MadeUp(), options)
    assert {name: getattr(rule, name) for name in options} == options
    assert (rule.frame_ids, rule.stop_ids) == ((0, 2, 3), (7,))
    assert set(objectives.get("seq2seq").options) == set(options)
    options = {"mask_rate": 0.4, "whole_word": False, "mask_special": True}
    for name in ("masked_lm", "next_sentence", "sentence_order"):
        rule = objectives.get(name).rule(MadeUp(), options)
        masking = getattr(rule, "masking", rule)
        assert (masking.rate, masking.mask_special) == (0.4, True)
        assert masking.num_slots(10) == 4
