"""Folders of transformers: what they compute there, all spellings of them, and the way back."""

import functools
import json

import keras
import numpy as np
import pytest
from bert_cases import write_hf
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from hf_cases import check_equal, golden_copy, hidden_states, inputs_of, values

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import TupeMaskedLM, TupeMaskedPairLM

SLOW = pytest.mark.slow
SIDES = ("encoder", "decoder")
ENCODERS = sorted(f"encoders/{path.stem}" for path in (GOLDEN / "encoders").glob("*.npz"))
BERTS = {
    "bert_absolute": "absolute",
    "bert_relative_key": "shaw",
    "bert_relative_key_query": "qkr_4",
}
FOLDERS = [*ENCODERS, *BERTS, "gpt2", "longformer"]
GLOBALS = {0: "local", 1: "global_1", 3: "global_3"}  # of golden numbers of Longformer
ROW = {"gpt2": 0, "longformer": 1}  # whose logits are there; 2 of the others, all of BERT
# Parts of ours that nothing there is the counterpart of.
POOLER = {"pooled_dense"}
NEW = {"deberta": {*POOLER, "block_0/attention/key", "block_1/attention/key"}, "bart": set()}
NEW |= {"encoders/bert_pair_small": set()}


@functools.cache
def golden(name):
    return dict(np.load(GOLDEN / f"{name}.npz"))


def kind_of(name):
    """Returns the `model_type` of a golden folder."""
    return name.removeprefix("encoders/").partition("_")[0].partition("/")[0]


def released(name, dtype, folder):
    """Returns a golden folder, of a BERT with the float64 arrays that its numbers are of."""
    if name not in BERTS or dtype == "float32":
        return GOLDEN / name
    weights = {
        key.removeprefix("weight/"): x for key, x in golden(name).items() if key[:7] == "weight/"
    }
    return write_hf(folder, json.loads(str(golden(name)["config"])), weights)


def readings(name):
    """Yields options, what the names of golden numbers end with, and the hidden states."""
    numbers, start = golden(name), "hidden_states"
    if name != "longformer":
        for key in numbers:
            if key.startswith(start):
                yield {}, key.removeprefix(start), numbers[key]
        return
    for number, kind in GLOBALS.items():
        for length in (5, 17, 24, 40):  # the window is 6 tokens
            yield {"num_global": number}, f"_{length}", numbers[f"{start}_{kind}_{length}"][None]


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        pytest.param(name, *case, marks=SLOW if "wide" in name and case[0] == "float32" else ())
        for name in FOLDERS
        for case in DTYPES
    ],
)
def test_a_released_folder_computes_what_it_does_in_transformers(name, dtype, tolerance, tmp_path):
    """A Longformer there with a softmax in float64, which is all that was changed."""
    skip_float64_on_jax(dtype)
    numbers, read = golden(name), functools.cache(from_hf)
    folder, padded = released(name, dtype, tmp_path / "bert"), False
    for options, suffix, expected in readings(name):
        model, report = read(folder, dtype=dtype, **options)
        assert {path.rpartition("/")[0] for path in report.new} <= NEW.get(
            name, NEW.get(kind_of(name), POOLER)
        )
        assert len(report.kept) + len(report.new) == len(model.weights)
        assert model.backbone.position == BERTS.get(name, model.backbone.position)
        inputs, real = inputs_of(numbers, suffix)
        padded |= not real.all()
        found = hidden_states(model, inputs)
        assert len(expected) in (1, model.backbone.num_layers + 1)
        for states, theirs in zip(found[-len(expected) :], expected, strict=True):
            assert_close(states[real], theirs[real], tolerance)
        if f"as_released{suffix}" in numbers:
            assert_close(found[-1][real], numbers[f"as_released{suffix}"][real], 2e-5)
        theirs = numbers.get(f"logits{suffix}", numbers.get("mlm_logits"))
        if options:
            theirs = numbers.get(f"logits_{GLOBALS[options['num_global']]}{suffix}")
        if theirs is None:
            continue
        if isinstance(model, TupeMaskedLM):
            places = np.arange(theirs.shape[-2], dtype="int32")
            inputs["mask_positions"] = np.tile(places, (len(real), 1))
        logits = keras.ops.convert_to_numpy(model(inputs))
        row = slice(None) if name in BERTS else ROW.get(name, 2)
        shown = real[row][..., : logits.shape[1]] if name in ("gpt2", *BERTS) else slice(None)
        assert_close(logits[row][shown], theirs[shown], tolerance)
    assert padded, "padding is part of the comparison"


def test_a_longformer_with_its_softmax_in_float32_is_near():
    skip_float64_on_jax("float64")
    numbers = golden("longformer")
    inputs, real = inputs_of(numbers, "_17")
    states = from_hf(GOLDEN / "longformer", dtype="float64")[0].backbone(inputs)["sequence_output"]
    wanted = numbers["float32_softmax_global_1_17"][real]
    assert_close(keras.ops.convert_to_numpy(states)[real], wanted, 2e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("name", ["small", "deep", "text"])
def test_a_released_pair_of_sides_computes_what_it_does(name, dtype, tolerance):
    skip_float64_on_jax(dtype)
    numbers = golden(f"bart/{name}")
    model, report = from_hf(GOLDEN / "bart" / name, dtype=dtype)
    assert len(report.kept) == len(model.weights)
    assert set(report.dropped) == {"final_logits_bias"}
    inputs = {key: numbers[key].astype("int32") for key in model.backbone.input}
    real = {side: inputs[f"{side}_padding_mask"].astype(bool) for side in SIDES}
    assert not real["encoder"][2, 0], "padding before a text is part of the comparison"
    backbone, given = model.backbone, {}
    for side in SIDES:
        part, count = getattr(backbone, side), len(getattr(backbone, f"{side}_trunk").blocks)
        names = ["embeddings_dropout", *(f"block_{index}" for index in range(count))]
        given |= {x: inputs[f"{side}_{x}"] for x in ("token_ids", "padding_mask")}
        probe = keras.Model(part.input, [part.get_layer(x).output for x in names])
        found = [keras.ops.convert_to_numpy(x) for x in probe(given)]
        given = {"encoder_states": found[-1], "encoder_padding_mask": given["padding_mask"]}
        for ours, theirs in zip(found, numbers[f"{side}_states"], strict=True):
            assert_close(ours[real[side]], theirs[real[side]], tolerance)
    logits = keras.ops.convert_to_numpy(model(inputs))[1]
    assert_close(logits[real["decoder"][1]], numbers["logits"][real["decoder"][1]], tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_bert_has_its_head_of_pairs_if_it_is_asked_for(dtype, tolerance, tmp_path):
    skip_float64_on_jax(dtype)
    name = "encoders/bert_pair_small"
    model, report = from_hf(GOLDEN / name, dtype=dtype, pair_head=True)
    assert isinstance(model, TupeMaskedPairLM)
    assert not report.new
    for _, suffix, _ in readings(name):
        inputs, _ = inputs_of(golden(name), suffix)
        theirs = {key: golden(name)[f"{key}{suffix}"] for key in ("logits", "pair_logits")}
        places = np.tile(np.arange(len(theirs["logits"]), dtype="int32"), (3, 1))
        found = model({**inputs, "mask_positions": places})
        found = {key: keras.ops.convert_to_numpy(value) for key, value in found.items()}
        assert_close(found["masked_lm"][2], theirs["logits"], tolerance)
        assert_close(found["pair"], theirs["pair_logits"], tolerance)
    to_hf(model, tmp_path / "again")
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    again, _ = from_hf(tmp_path / "again", dtype=dtype, pair_head=True)
    check_equal(values(again), values(model))
    with pytest.raises(ValueError, match="cls.seq_relationship.weight: missing"):
        from_hf(GOLDEN / "bert_absolute", pair_head=True)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW if "wide" in name else ()) for name in ENCODERS]
)
def test_a_released_folder_comes_back_bit_by_bit(name, tmp_path):
    model, report = from_hf(GOLDEN / name)
    to_hf(model, tmp_path / "again", model_type=kind_of(name))
    again, second = from_hf(tmp_path / "again")
    found, expected = values(again), values(model)
    check_equal({x: found[x] for x in report.kept}, {x: expected[x] for x in report.kept})
    assert set(second.new) <= set(report.new)
    config = json.loads((GOLDEN / name / "config.json").read_text())
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
    inputs, _ = inputs_of(golden("encoders/roformer_wide"), "_31")
    inputs["mask_positions"] = np.array([[0, 1]] * 3, "int32")
    np.testing.assert_array_equal(np.asarray(again(inputs)), np.asarray(model(inputs)))


# Spellings: what old and other checkpoints are like


def renamed(*pairs):
    """Returns a function that spells weights otherwise."""

    def change(weights):
        for old, new in pairs:
            weights = {name.replace(old, new): value for name, value in weights.items()}
        return weights

    return change


def with_more(**copies):
    """Returns a function that adds copies of weights, or ones of a shape."""

    def change(weights):
        more = {
            name: weights[x].copy() if isinstance(x, str) else np.ones(x, "f")
            for name, x in copies.items()
        }
        return {**weights, **more}

    return change


def bare(weights):
    return {x.removeprefix("transformer.").removeprefix("model."): y for x, y in weights.items()}


TRANSFORM = ("cls.predictions.transform.", "cls.predictions.")
RELEASED_HEAD = renamed(TRANSFORM, ("cls.predictions.", "lm_predictions.lm_head."))
OF_2018 = renamed(("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
WORDS = "bert.embeddings.word_embeddings.weight"
TWINS = {
    "cls.predictions.decoder.weight": WORDS,
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "bert.embeddings.position_ids": (1, 5),
}
HEADS = {"cls.seq_relationship.weight": (2, 6), "classifier.bias": 3, "qa_outputs.bias": 2}
OLD_GPT_2 = {
    "h.0.attn.bias": (1, 1, 40, 40),
    "h.0.attn.masked_bias": (),
    "lm_head.weight": "wte.weight",
    "score.weight": (2, 12),
}
OLD_BART = {
    "lm_head.weight": "shared.weight",
    "encoder.version": 1,
    "classification_head.dense.weight": (2, 12),
}


@pytest.mark.parametrize(
    ("name", "change", "more"),
    [
        ("bert_absolute", OF_2018, {}),
        ("bert_absolute", dict, TWINS),
        ("bert_absolute", renamed(("cls.predictions.bias", "cls.predictions.decoder.bias")), {}),
        ("bert_absolute", dict, HEADS),
        ("gpt2", bare, OLD_GPT_2),
        ("bart/small", bare, OLD_BART),
        ("bart/small", renamed(("model.shared.", "model.decoder.embed_tokens.")), {}),
        ("encoders/deberta_wide", RELEASED_HEAD, {}),
    ],
)
def test_all_spellings_of_a_checkpoint_give_the_same_model(name, change, more, tmp_path):
    plain, before = from_hf(GOLDEN / name)

    def changed(weights):
        return with_more(**more)(change(weights))

    model, report = from_hf(golden_copy(name, tmp_path / "changed", weights=changed))
    assert set(report.dropped) == {*more, *before.dropped}
    assert report.kept == before.kept
    found, expected = values(model), values(plain)
    check_equal({x: found[x] for x in report.kept}, {x: expected[x] for x in report.kept})
