"""BARTs that cannot be converted: what is said of them."""

import re

import numpy as np
import pytest
from hf_cases import golden_copy

from keras_tupe.convert import from_hf, to_hf, to_hf_bart
from keras_tupe.models import (
    TupeBackbone,
    TupeMaskedLM,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeSeq2SeqLMPreprocessor,
    TupeTokenizer,
)

SIZES = {"position": "absolute", "num_decoder_layers": 1, "max_sequence_length": 9}


def refused(folder):
    """Returns what is said about a folder."""
    with pytest.raises(ValueError, match="Received: ") as raised:
        from_hf(folder)
    return str(raised.value)


@pytest.mark.parametrize(
    ("entry", "value", "expected"),
    [
        ("model_type", "mbart", "no counterpart here. The nearest is 'bart'. Received"),
        ("architectures", ["BartForCausalLM"], "architectures must be among"),
        ("activation_function", "relu", "activation_function must be one of ['gelu'"),
        ("decoder_attention_heads", 2, "decoder_attention_heads=2 must be encoder_attention_heads"),
        ("decoder_ffn_dim", 7, "decoder_ffn_dim=7 must be encoder_ffn_dim=20"),
        ("decoder_layers", None, "decoder_layers is missing"),
        ("encoder_layers", 0, "encoder_layers must be an integer > 0, not 0"),
        ("d_model", 13, "d_model=13 must be divisible by encoder_attention_heads=3"),
        ("max_position_embeddings", 16, "embed_positions.weight: shape (17, 12), expected (18, 12"),
        ("scale_embedding", 1, "scale_embedding must be true or false, not 1"),
        ("decoder_start_token_id", 1, "decoder_start_token_id=1 must be eos_token_id=2 or bos_"),
        ("eos_token_id", [2], "eos_token_id must be an integer >= 0, not [2]"),
        ("is_encoder_decoder", False, "a side without the other cannot be converted"),
        ("tie_word_embeddings", False, "an output matrix of its own cannot be converted"),
        ("normalize_before", True, "normalize_before=True: pre-LN blocks cannot be converted"),
        ("normalize_embedding", False, "embeddings that are not normalized cannot be converted"),
        ("static_position_embeddings", True, "sinusoids cannot be converted"),
        ("encoder_layerdrop", 1, "encoder_layerdrop must be a share in [0, 1), not 1"),
        ("init_std", 0, "init_std must be a number > 0"),
    ],
)
def test_a_configuration_of_something_else_is_named(entry, value, expected, tmp_path):
    assert expected in refused(golden_copy("bart/small", tmp_path / "bart", {entry: value}))


def test_what_is_not_taken_over_is_noted(tmp_path):
    changes = {"num_beams": 4, "activation_dropout": 0.1, "attention_dropout": 0.1, "what": 1}
    _, report = from_hf(golden_copy("bart/small", tmp_path / "bart", changes))
    notes = " ".join(report.notes)
    assert "num_beams=4, forced_eos_token_id=2" in notes
    assert "activation_dropout=0.1 not used" in notes
    assert "attention_dropout" not in notes
    assert "rows 0 and 1 of both position tables" in notes
    assert "not looked at: what" in notes


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("model.decoder.layers.0.encoder_attn.k_proj.bias", None, "encoder_attn.k_proj.bias: miss"),
        ("model.decoder.layers.1.fc1.bias", np.ones(20, "f"), "layers.1.fc1.bias: left over"),
        ("lm_head.weight", np.ones((23, 12), "f"), "'lm_head.weight', which differs from 'shared"),
        ("model.shared.weight", None, "shared.weight: missing"),
        (
            "final_logits_bias",
            np.eye(1, 23, 5, dtype="f") + np.eye(1, 23, 7, dtype="f"),
            "Received: 'final_logits_bias', of whose 23 numbers 2 are not zero",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(name, value, expected, tmp_path):
    def change(weights):
        found = {**weights, name: value}
        return {key: array for key, array in found.items() if array is not None}

    assert expected in refused(golden_copy("bart/small", tmp_path / "bart", weights=change))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"position": "rope"}, "position='rope' must be 'absolute'"),
        ({"normalize_first": True}, "normalize_first=True must be False"),
        ({"normalize_embeddings": False}, "normalize_embeddings=False must be True"),
        ({"layer_norm_epsilon": 1e-12}, "layer_norm_epsilon=1e-12 must be 1e-05"),
    ],
)
def test_what_their_bart_cannot_do_is_named(changes, expected, tmp_path):
    backbone = TupeSeq2SeqBackbone(13, 1, 3, 18, 8, **{**SIZES, **changes})
    with pytest.raises(ValueError, match=re.escape(expected)):
        to_hf_bart(backbone, tmp_path / "bart")
    assert list(tmp_path.iterdir()) == []


def test_a_bart_is_no_bert_and_a_masked_lm_no_bart(tmp_path):
    pairs = TupeSeq2SeqBackbone(13, 1, 3, 15, 8, **SIZES)
    with pytest.raises(TypeError, match="Received: a TupeSeq2SeqBackbone"):
        to_hf(pairs, tmp_path / "bert", model_type="bert")
    masked = TupeMaskedLM(TupeBackbone(13, 1, 3, 15, 8, position="absolute"))
    with pytest.raises(TypeError, match="must be a `TupeSeq2SeqLM` or a `TupeSeq2SeqBackbone`"):
        to_hf(masked, tmp_path / "bart", model_type="bart")
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_of_another_kind_is_not_written(tensorflow, tmp_path):
    from bert_cases import PIECES

    backbone = TupeSeq2SeqBackbone(len(PIECES), 1, 3, 15, 8, **SIZES)
    preprocessor = TupeSeq2SeqLMPreprocessor(TupeTokenizer(PIECES), 9, 9)
    with pytest.raises(ValueError, match="a wordpiece tokenizer, where byte pairs belong"):
        to_hf(TupeSeq2SeqLM(backbone, preprocessor), tmp_path / "bart")
