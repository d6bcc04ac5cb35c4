"""Encoders with BERT's trunk that cannot be converted: what is said of them."""

import re

import numpy as np
import pytest
from hf_cases import golden_copy

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeTokenDiscriminator

WORDS = "embeddings.word_embeddings.weight"


def refused(kind, folder, **changes):
    """Returns what is said about a golden folder with changes."""
    with pytest.raises(ValueError, match="Received: ") as caught:
        from_hf(golden_copy(f"encoders/{kind}_small", folder / kind, **changes))
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "entry", "value", "expected"),
    [
        ("roberta", "model_type", "xlm-roberta", "The nearest is 'roberta'."),
        ("roberta", "model_type", "mpnet2", "The nearest is 'mpnet'."),
        ("roberta", "model_type", "t5", "other models have no counterpart here. Received"),
        ("roberta", "hidden_act", "relu", "hidden_act must be one of ['gelu', 'gelu_new'"),
        ("roberta", "hidden_act", ["gelu"], "hidden_act must be one of"),
        ("roberta", "is_decoder", True, "is_decoder=True: decoders cannot be converted"),
        ("roberta", "architectures", ["RobertaForCausalLM"], "not ['RobertaForCausalLM']"),
        ("roberta", "position_embedding_type", "relative_key", "relative positions cannot be"),
        ("roberta", "pad_token_id", -1, "pad_token_id must be an integer >= 0, not -1"),
        ("roberta", "max_position_embeddings", 2, "must be more than pad_token_id + 1 = 2"),
        ("roberta", "hidden_size", 13, "hidden_size=13 must be divisible by num_attention_heads=3"),
        ("roberta", "vocab_size", None, "vocab_size is missing"),
        ("mpnet", "relative_attention_num_buckets", 16, "num_buckets must be 32, with which the"),
        ("mpnet", "pad_token_id", 0, "pad_token_id must be 1, by which positions are counted"),
        ("mpnet", "max_position_embeddings", 2, "must be more than pad_token_id + 1 = 2"),
        (
            "albert",
            "num_hidden_groups",
            4,
            "must be divisible by num_hidden_groups=4",
        ),
        ("albert", "num_hidden_groups", 0, "num_hidden_groups must be an integer > 0, not 0"),
        ("albert", "inner_group_num", 2, "groups of more than one layer cannot be converted"),
        ("albert", "position_embedding_type", "relative_key", "relative positions cannot be"),
        ("electra", "embedding_size", "7", "embedding_size must be an integer > 0, not '7'"),
        ("electra", "architectures", ["ElectraForCausalLM"], "not ['ElectraForCausalLM']"),
        ("deberta", "relative_attention", None, "attention without relative positions cannot be"),
        ("deberta", "position_biased_input", None, "beside the relative ones cannot be"),
        ("deberta", "pos_att_type", ["c2p"], "pos_att_type must be both 'c2p' and 'p2c', not ["),
        ("deberta", "pos_att_type", None, "pos_att_type must be both 'c2p' and 'p2c', not None"),
        ("deberta", "max_relative_positions", 16, "must be at most max_position_embeddings=15"),
        ("deberta", "max_relative_positions", "k", "max_relative_positions must be an integer"),
        ("deberta", "talking_head", True, "heads that are mixed cannot be converted"),
        ("deberta", "type_vocab_size", -1, "type_vocab_size must be an integer >= 0, not -1"),
        ("deberta", "embedding_size", 7, "embedding_size=7 must be hidden_size: its embeddings"),
        ("deberta", "model_type", "deberta-v2", "The nearest is 'deberta'."),
        ("roformer", "rotary_value", True, "values that are rotated cannot be converted"),
        ("roformer", "num_attention_heads", 4, "must be an even multiple of num_attention_heads=4"),
        ("roformer", "embedding_size", 0, "embedding_size must be an integer > 0, not 0"),
        ("mpnet", "tie_word_embeddings", False, "an output matrix of its own cannot be converted"),
    ],
)
def test_a_configuration_of_something_else_is_named(kind, entry, value, expected, tmp_path):
    message = refused(kind, tmp_path, config={entry: value})
    assert expected in message
    assert "config.json" in message


# The names of a weight to leave out, and of one to add, in each kind.
LOST = {
    "albert": "encoder.embedding_hidden_mapping_in.weight",
    "deberta": "encoder.layer.1.attention.self.pos_q_proj.bias",
    "electra": "generator_predictions.LayerNorm.weight",
    "mpnet": "encoder.relative_attention_bias.weight",
    "roberta": "encoder.layer.1.attention.self.key.bias",
    "roformer": "embeddings_project.weight",
}


@pytest.mark.parametrize("kind", LOST)
def test_weights_that_do_not_fit_are_named(kind, tmp_path):
    def change(weights):
        left = {name: x for name, x in weights.items() if not name.endswith(LOST[kind])}
        assert len(left) == len(weights) - 1
        return {**left, "lora": np.ones(3, "f")}

    message = refused(kind, tmp_path, weights=change)
    assert f"{LOST[kind]}: missing" in message
    assert "lora: left over" in message


@pytest.mark.parametrize("kind", LOST)
def test_an_output_matrix_of_its_own_is_refused(kind, tmp_path):
    def change(weights):
        (name,) = (name for name in weights if name.endswith(WORDS))
        decoders = ("lm_head.", "cls.predictions.", "predictions.")
        decoder = {f"{start}bias": f"{start}decoder" for start in decoders}
        decoder["generator_lm_head.bias"] = "generator_lm_head"
        (matrix,) = (decoder[bias] for bias in decoder if bias in weights)
        return {**weights, f"{matrix}.weight": weights[name] + 1}

    message = refused(kind, tmp_path, weights=change)
    assert "untied ones have no place here" in message


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("roberta", {"position": "rope"}, "position='rope' must be 'absolute'"),
        ("roberta", {"normalize_first": True}, "normalize_first=True must be False"),
        ("roberta", {"embedding_dim": 4}, "embedding_dim=4 must be None"),
        ("roberta", {"num_groups": 1}, "num_groups=1 must be None"),
        ("roberta", {"attention_pattern": "causal"}, "'causal' must be 'full'"),
        ("mpnet", {"position": "t5"}, "position='t5' must be 'bert_r'"),
        ("mpnet", {"position_options": {"cls": "untied"}}, "cls='untied' must be 'tied'"),
        ("mpnet", {"position_options": {"num_buckets": 8}}, "num_buckets=8 must be 32"),
        ("mpnet", {"num_segments": 2}, "num_segments=2 must be 0"),
        ("albert", {}, "embedding_dim=None: ALBERT maps its embeddings to the width of the blocks"),
        ("electra", {"num_groups": 2}, "num_groups=2 must be None"),
        ("deberta", {"position_options": {"variant": "paper"}}, "'paper' must be 'released'"),
        ("deberta", {"zero_padded_embeddings": False}, "embeddings=False must be True"),
        ("deberta", {"num_groups": 1}, "num_groups=1 must be None"),
        ("roformer", {"position_options": {"cls": "untied"}}, "cls='untied' must be 'tied'"),
        ("roformer", {"position_options": {"theta": 500.0}}, "theta=500.0 must be 10000.0"),
        ("roformer", {"position_options": {"partial": 0.5}}, "partial=0.5 must be 1.0"),
        ("roformer", {"num_groups": 2}, "num_groups=2 must be None"),
        ("mpet", {}, "The nearest is 'mpnet'. Received: model_type='mpet'"),
    ],
)
def test_what_theirs_cannot_do_is_named(kind, changes, expected, tmp_path):
    position = {"mpnet": "bert_r", "roformer": "rope"}.get(kind, "absolute")
    position = kind if kind == "deberta" else position
    sizes = {"max_sequence_length": 9, "position": position}
    backbone = TupeBackbone(13, 2, 3, 12, 8, **{**sizes, **changes})
    with pytest.raises(ValueError, match=re.escape(expected)):
        to_hf(backbone, tmp_path / "theirs", model_type=kind)
    assert list(tmp_path.iterdir()) == []


def test_positions_of_roformer_must_be_its_sines_and_cosines(tmp_path):
    def change(weights):
        (name,) = (name for name in weights if name.endswith("embed_positions.weight"))
        return {**weights, name: weights[name] + np.float32(0.001)}

    message = refused("roformer", tmp_path, weights=change)
    assert "embed_positions.weight" in message
    assert "sines and cosines" in message


def test_a_bias_that_deberta_has_not_must_be_zero(tmp_path):
    options = {"variant": "released"}
    backbone = TupeBackbone(13, 2, 3, 12, 8, "deberta", options, zero_padded_embeddings=True)
    backbone.blocks[1].attention.key_dense.bias.assign(np.ones((3, 4)))
    with pytest.raises(ValueError, match="block_1/attention/key/bias must be zero: DeBERTa's keys"):
        to_hf(backbone, tmp_path / "theirs")


def test_a_head_with_another_activation_is_named(tmp_path):
    backbone = TupeBackbone(13, 1, 3, 12, 8, "absolute", activation="gelu_approximate")
    model = TupeMaskedLM(backbone, head_activation="gelu_approximate")
    with pytest.raises(ValueError, match="head_activation='gelu_approximate' must be 'gelu'"):
        to_hf(model, tmp_path / "theirs", model_type="roberta")
    exact = TupeBackbone(13, 1, 3, 12, 8, "absolute")
    with pytest.raises(ValueError, match="head_activation='gelu_approximate' must be 'gelu'"):
        to_hf(TupeMaskedLM(exact, head_activation="gelu_approximate"), tmp_path / "theirs")
    folder = golden_copy("encoders/roformer_wide", tmp_path / "roformer")
    assert from_hf(folder)[0].head_activation == "gelu_approximate"


def test_a_discriminator_with_another_activation_is_named(tmp_path):
    changes = {"config": {"hidden_act": "gelu_new"}}
    message = refused("electra_discriminator", tmp_path, **changes)
    assert "hidden_act must be 'gelu' where there is such a head" in message
    backbone = TupeBackbone(13, 1, 3, 12, 8, "absolute", activation="gelu_approximate")
    with pytest.raises(ValueError, match="activation='gelu_approximate' must be 'gelu', as its"):
        to_hf(TupeTokenDiscriminator(backbone), tmp_path / "theirs")


def test_all_problems_of_a_configuration_are_named_at_once(tmp_path):
    changes = {"hidden_act": "relu", "layer_norm_eps": 0, "position_embedding_type": "rope"}
    message = refused("roberta", tmp_path, config=changes)
    for name in changes:
        assert name in message
