"""Models of ours in every architecture: written and read again, bit by bit."""

import json

import numpy as np
import pytest
import safetensors.numpy
from bert_cases import scrambled
from hf_cases import check_equal, values

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.convert.architectures import CONVERTERS
from keras_tupe.models import (
    TupeBackbone,
    TupeCausalLM,
    TupeMaskedLM,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
)

SHARED = {"position_options": {"share_heads": True}, "num_segments": 2}
NARROW = {"embedding_dim": 5, "num_segments": 2}
GPT_2 = {
    "attention_pattern": "causal",
    "normalize_first": True,
    "normalize_embeddings": False,
}
RELEASED = {"variant": "released", "k": 4}
APPROXIMATE = {"activation": "gelu_approximate"}


def windows(num_global, **more):
    options = {"window": 2, "num_global": num_global, "separate_global": num_global > 0}
    return {"attention_pattern": "sliding_window", "pattern_options": options, **more}


# By name, which begins with the model_type: arguments of a backbone, entries of their config.json.
CASES = {
    "albert": ({**NARROW, "num_groups": 1}, {"embedding_size": 5}),
    "bart": ({"num_decoder_layers": 1}, {"decoder_start_token_id": 2, "forced_bos_token_id": 0}),
    "bart_scaled": ({"num_decoder_layers": 1, "scale_embeddings": True, **APPROXIMATE}, {}),
    "bert": ({"num_segments": 2}, {"position_embedding_type": "absolute"}),
    "bert_shaw": ({"position": "shaw", **SHARED}, {"position_embedding_type": "relative_key"}),
    "bert_qkr_4": (
        {"position": "qkr_4", **SHARED},
        {"position_embedding_type": "relative_key_query"},
    ),
    "deberta": (
        {"position": "deberta", "position_options": RELEASED, "zero_padded_embeddings": True},
        {"max_relative_positions": 4},
    ),
    "electra": (NARROW, {"embedding_size": 5}),
    "gpt2": (GPT_2, {"activation_function": "gelu"}),
    "gpt2_approximate": ({**GPT_2, **APPROXIMATE}, {"activation_function": "gelu_new"}),
    "longformer": (windows(0), {"attention_window": [4, 4], "max_position_embeddings": 11}),
    "longformer_global": (windows(2), {}),
    "longformer_segments": (windows(0, num_segments=2), {"type_vocab_size": 2}),
    "longformer_both": (windows(2, num_segments=2), {}),
    "mpnet": ({"position": "bert_r"}, {"max_position_embeddings": 11}),
    "roberta": ({"num_segments": 2}, {"max_position_embeddings": 11}),
    "roformer": ({"position": "rope", **NARROW}, {"embedding_size": 5}),
}
TASKS = {"bart": TupeSeq2SeqLM, "gpt2": TupeCausalLM}
LOST = {"pooled_dense", "block_0/attention/key", "block_1/attention/key"}  # bias of DeBERTa's keys


@pytest.mark.parametrize("has_head", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_model_comes_back_from_their_format_bit_by_bit(name, has_head, tmp_path):
    kind, (arguments, entries) = name.partition("_")[0], CASES[name]
    task, converter = TASKS.get(kind, TupeMaskedLM), CONVERTERS[kind]
    make = TupeSeq2SeqBackbone if kind == "bart" else TupeBackbone
    sizes = {"max_sequence_length": 9, "dropout": 0.25, "initializer_range": 0.5}
    backbone = make(13, 2, 3, 12, 8, **{"position": "absolute", **sizes, **arguments})
    model = scrambled(task(backbone) if has_head else backbone)
    for block in backbone.blocks if kind == "deberta" else ():
        block.attention.key_dense.bias.assign(np.zeros((3, 4)))
    to_hf(model, tmp_path / "theirs", kind)
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    theirs = converter.heads[task.__name__].theirs if has_head else converter.trunk
    assert config["architectures"] == [theirs]
    assert {entry: config[entry] for entry in entries} == entries
    released = safetensors.numpy.load_file(tmp_path / "theirs" / "model.safetensors")
    assert any(x.startswith(f"{converter.prefix}.") for x in released) == has_head
    for path, table in converter.names.items():
        if path.endswith("position_embedding") and backbone.position in ("absolute", "bert_r"):
            rows = released[f"{converter.prefix}.{table}.weight" if has_head else f"{table}.weight"]
            assert len(rows) == 9 + converter.skipped(config)
            assert not rows[: converter.skipped(config)].any()
    options = converter.options(backbone)
    again, report = from_hf(tmp_path / "theirs", **options)
    expected, found = values(model), values(again if has_head else again.backbone)
    kept = [path for path in expected if path in report.kept]
    assert {path.rpartition("/")[0] for path in expected if path not in kept} <= LOST
    check_equal({path: found[path] for path in kept}, {path: expected[path] for path in kept})
    ours = {**backbone.get_config(), "name": again.backbone.name}
    assert again.backbone.get_config() == ours
