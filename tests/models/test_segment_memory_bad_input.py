"""What segments with a memory refuse, in a sentence each."""

import dataclasses

import numpy as np
import pytest
from position_cases import Case, encoder, inputs, random_ids

from keras_tupe import TupeBackbone, call_with_memory, positions, with_memory_length
from keras_tupe.layers import PlainSelfAttention

CAUSAL = {"attention_pattern": "causal"}
SEGMENTS = {**CAUSAL, "memory_length": 4, "segment_length": 3}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tupe_r", r"\[CLS\] is untied.*cls='tied'"),
        ("absolute", "carry positions"),
        ("bert_r", "carry positions"),
        ("sinusoidal", "carry positions"),
        ("free_table", "every pair of positions"),
    ],
)
def test_methods_without_a_memory(name, reason):
    with pytest.raises(ValueError, match=f"not defined for a memory.*{reason}"):
        encoder(Case(name), **SEGMENTS)


def test_a_method_of_ones_own_says_that_it_has_a_memory(monkeypatch):
    record = positions.get("rope")
    given = {
        field.name: getattr(record, field.name)
        for field in dataclasses.fields(record)
        if field.name != "refused_memory"
    }
    monkeypatch.setitem(positions.METHODS, "rope", positions.PositionMethod(**given))
    with pytest.raises(ValueError, match="its record does not say that it is, by `refused_memory`"):
        encoder(Case("rope"), **SEGMENTS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory_length": -1}, "`memory_length` must be an integer >= 0"),
        ({"memory_length": 2.0}, "`memory_length` must be an integer >= 0"),
        ({"memory_length": 4, "segment_length": 0}, "`segment_length` must be a positive"),
        ({"memory_length": 4, "attention_pattern": "full"}, "no token sees later ones"),
        (
            {
                "memory_length": 4,
                "attention_pattern": "sliding_window",
                "pattern_options": {"window": 2, "causal": True, "num_global": 1},
            },
            "no token sees later ones",
        ),
    ],
)
def test_impossible_lengths_and_patterns(settings, message):
    with pytest.raises(ValueError, match=message):
        encoder(Case("rope"), **{**CAUSAL, **settings})


def test_tables_need_rows_for_memory_and_segment():
    options = (("cls", "tied"),)
    for case in (Case("tupe_a", options), Case("shaw", options)):
        with pytest.raises(ValueError, match="memory_length . segment_length = 18"):
            encoder(case, **CAUSAL, memory_length=15, segment_length=3)
    encoder(Case("shaw", (("k", 3),)), **CAUSAL, memory_length=15, segment_length=3)


def test_an_attention_layer_without_the_memory_is_refused(monkeypatch):
    record = dataclasses.replace(
        positions.get("none"),
        attention=lambda dims, options: PlainSelfAttention(
            dims.num_heads, dims.key_dim, attention_pattern="causal", name="attention"
        ),
    )
    monkeypatch.setitem(positions.METHODS, "none", record)
    with pytest.raises(ValueError, match="must have the memory of the encoder"):
        encoder(Case("none"), **SEGMENTS)


def test_parts_must_continue_what_is_remembered():
    model = encoder(Case("rope"), **SEGMENTS)
    ids = random_ids(2, 6)
    _, memory = call_with_memory(model, inputs(ids))
    with pytest.raises(ValueError, match=r"must continue.*shape \(2, 3, 4, 10\).*\(2, 2, 4, 10\)"):
        call_with_memory(model, inputs(random_ids(3, 6)), memory)
    other = with_memory_length(model, 5)
    with pytest.raises(ValueError, match="must continue what the memory is of"):
        call_with_memory(other, inputs(ids), memory)
    _, ended = call_with_memory(model, inputs(ids, lengths=[6, 5]))
    with pytest.raises(ValueError, match="has ended.*row 1 has padding after a token"):
        call_with_memory(model, inputs(ids), ended)
    with pytest.raises(ValueError, match="what `call_with_memory` returned"):
        call_with_memory(model, inputs(ids), memory["hidden_states"])
    with pytest.raises(ValueError, match="memory_length=0"):
        call_with_memory(encoder(Case("rope"), **CAUSAL), inputs(ids))
    with pytest.raises(TypeError, match="must be a `TupeBackbone`"):
        call_with_memory(None, inputs(ids))


def test_what_cannot_have_another_memory():
    model = encoder(Case("tupe_a", (("cls", "tied"),)), **SEGMENTS)
    with pytest.raises(ValueError, match="a vector for each token of memory and segment"):
        with_memory_length(model, 5)
    assert with_memory_length(model, 4).memory_length == 4
    with pytest.raises(ValueError, match="memory_length . segment_length = 18"):
        with_memory_length(encoder(Case("shaw"), **SEGMENTS), 15)
    with pytest.raises(ValueError, match="`memory_length` must be an integer"):
        with_memory_length(encoder(Case("rope"), **SEGMENTS), 1.5)
    with pytest.raises(ValueError, match="say by `segment_length`"):
        with_memory_length(encoder(Case("rope"), **CAUSAL), 5)
    with pytest.raises(TypeError, match="must be a `TupeBackbone` or a task"):
        with_memory_length("rope", 5)


def test_scores_are_no_matrix_of_the_row():
    layer = PlainSelfAttention(2, 4, attention_pattern="causal", memory_length=3)
    with pytest.raises(ValueError, match="no matrix of all pairs"):
        layer.scores(np.zeros((1, 5, 8), "float32"))


def test_unknown_names_are_refused():
    with pytest.raises(Exception, match="memory_length"):
        TupeBackbone(20, 1, 2, 8, 8, "rope", **CAUSAL, memory_lenght=3)
