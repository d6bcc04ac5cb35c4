"""Encoders with BERT's trunk: what they compute in transformers, both ways."""

import functools
import json

import keras
import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from hf_cases import check_equal, golden_copy, hidden_states, inputs_of, values

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import (
    TupeMaskedLM,
    TupeMaskedPairLM,
    TupeTokenDiscriminator,
)

NAMES = sorted(path.stem for path in (GOLDEN / "encoders").glob("*.npz"))
SLOW = pytest.mark.slow
# Both types on the small shapes, float64 on all.
CASES = [
    pytest.param(name, *case, marks=SLOW if "small" not in name and case[0] == "float32" else ())
    for name in NAMES
    for case in DTYPES
]
# Parts of ours that nothing there is the counterpart of.
NEW = {
    "albert": {"pooled_dense"},
    "bert": set(),
    "deberta": {"pooled_dense", "block_0/attention/key", "block_1/attention/key"},
    "electra": {"pooled_dense"},
    "mpnet": {"pooled_dense"},
    "roberta": {"pooled_dense"},
    "roformer": {"pooled_dense"},
}


@functools.cache
def golden(name):
    """Returns the numbers of a folder, and the lengths of its rows."""
    found = dict(np.load(GOLDEN / "encoders" / f"{name}.npz"))
    return found, [key.removeprefix("logits") for key in found if key.startswith("logits_")]


def kind_of(name):
    """Returns the `model_type` of a golden folder."""
    return name.partition("_")[0]


@pytest.mark.parametrize(("name", "dtype", "tolerance"), CASES)
def test_a_released_folder_computes_what_it_does_in_transformers(name, dtype, tolerance):
    skip_float64_on_jax(dtype)
    numbers, lengths = golden(name)
    model, report = from_hf(GOLDEN / "encoders" / name, dtype=dtype)
    assert {path.rpartition("/")[0] for path in report.new} <= NEW[kind_of(name)]
    assert len(report.kept) + len(report.new) == len(model.weights)
    for length in lengths:
        inputs, real = inputs_of(numbers, length)
        expected = numbers[f"hidden_states{length}"]
        found = hidden_states(model, inputs)
        assert len(expected) in (1, model.backbone.num_layers + 1)
        for states, theirs in zip(found[-len(expected) :], expected, strict=True):
            assert_close(states[real], theirs[real], tolerance)
        if f"as_released{length}" in numbers:
            assert_close(found[-1][real], numbers[f"as_released{length}"][real], 2e-5)
        theirs = numbers[f"logits{length}"]
        if isinstance(model, TupeTokenDiscriminator):
            logits = keras.ops.convert_to_numpy(model(inputs))
            assert_close(logits[2], theirs, tolerance)
            continue
        places = np.tile(np.arange(len(theirs), dtype="int32"), (3, 1))
        logits = keras.ops.convert_to_numpy(model({**inputs, "mask_positions": places}))
        assert_close(logits[2], theirs, tolerance)


@pytest.mark.parametrize(
    "name", [name if "small" in name else pytest.param(name, marks=SLOW) for name in NAMES]
)
def test_a_released_folder_comes_back_bit_by_bit(name, tmp_path):
    model, report = from_hf(GOLDEN / "encoders" / name)
    to_hf(model, tmp_path / "again", model_type=kind_of(name))
    again, second = from_hf(tmp_path / "again")
    check_equal(
        {path: value for path, value in values(again).items() if path in report.kept},
        {path: value for path, value in values(model).items() if path in report.kept},
    )
    assert set(second.new) <= set(report.new)
    config = json.loads((GOLDEN / "encoders" / name / "config.json").read_text())
    written = json.loads((tmp_path / "again" / "config.json").read_text())
    spelled = {"architectures", "pad_token_id", "max_position_embeddings", "pos_att_type"}
    spelled |= {"max_relative_positions"}
    for entry in (written.keys() & config.keys()) - spelled:
        assert written[entry] == config[entry], entry


def test_a_preset_keeps_the_activation_of_the_head(tmp_path):
    model, _ = from_hf(GOLDEN / "encoders" / "roformer_wide")
    model.save_to_preset(str(tmp_path / "preset"))
    again = TupeMaskedLM.from_preset(str(tmp_path / "preset"))
    assert again.head_activation == again.head.activation == "gelu_approximate"
    inputs, _ = inputs_of(golden("roformer_wide")[0], "_31")
    inputs["mask_positions"] = np.array([[0, 1]] * 3, "int32")
    np.testing.assert_array_equal(np.asarray(again(inputs)), np.asarray(model(inputs)))


def test_the_head_of_released_debertas_is_found_under_its_own_name(tmp_path):
    def change(weights):
        pairs = (("cls.predictions.transform.", "cls.predictions."),)
        pairs += (("cls.predictions.", "lm_predictions.lm_head."),)
        for old, new in pairs:
            weights = {name.replace(old, new): value for name, value in weights.items()}
        return weights

    folder = golden_copy("encoders/deberta_wide", tmp_path / "deberta", weights=change)
    with_other_names, report = from_hf(folder)
    assert "mlm_head/dense/kernel" in report.kept
    model, _ = from_hf(GOLDEN / "encoders" / "deberta_wide")
    check_equal(
        {path: value for path, value in values(with_other_names).items() if "mlm_head" in path},
        {path: value for path, value in values(model).items() if "mlm_head" in path},
    )


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_bert_has_its_head_of_pairs_if_it_is_asked_for(dtype, tolerance, tmp_path):
    skip_float64_on_jax(dtype)
    numbers, lengths = golden("bert_pair_small")
    model, report = from_hf(GOLDEN / "encoders" / "bert_pair_small", dtype=dtype, pair_head=True)
    assert isinstance(model, TupeMaskedPairLM)
    assert not report.new
    for length in lengths:
        inputs, _ = inputs_of(numbers, length)
        theirs = {name: numbers[f"{name}{length}"] for name in ("logits", "pair_logits")}
        places = np.tile(np.arange(len(theirs["logits"]), dtype="int32"), (3, 1))
        found = model({**inputs, "mask_positions": places})
        found = {name: keras.ops.convert_to_numpy(value) for name, value in found.items()}
        assert_close(found["masked_lm"][2], theirs["logits"], tolerance)
        assert_close(found["pair"], theirs["pair_logits"], tolerance)
    to_hf(model, tmp_path / "again")
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    again, _ = from_hf(tmp_path / "again", dtype=dtype, pair_head=True)
    check_equal(values(again), values(model))


def test_a_head_of_pairs_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="cls.seq_relationship.weight: missing"):
        from_hf(GOLDEN / "bert_absolute", pair_head=True)
