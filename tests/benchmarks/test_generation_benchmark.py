"""The benchmark of text generation, run as a user runs it, on tiny models."""

import json

import keras
import numpy as np
import pytest
from position_cases import VOCABULARY, inputs, random_ids, scramble

from benchmarks.generation import __main__ as generation
from benchmarks.generation.cases import WithoutCache
from keras_tupe import TupeBackbone, TupeCausalLM


@pytest.mark.slow
def test_a_small_run_writes_a_table_and_its_numbers(tmp_path, capsys):
    words = ["--batches", "1,2", "--length", "12", "--prompt", "3", "--rounds", "5"]
    words += ["--size", "tiny", "--positions", "rope", "--out", str(tmp_path)]
    generation.main(words)
    record = json.loads((tmp_path / "generation.json").read_text())
    labels = ("absolute", "rope", "absolute, no cache", "KerasHub's GPT-2")
    assert [(row["batch"], row["model"]) for row in record["rows"]] == [
        (batch, label) for batch in (1, 2) for label in labels
    ]
    for row in record["rows"]:
        low, high = row["ratios"]["absolute"]["interval"]
        assert low <= row["ratios"]["absolute"]["median"] <= high
    assert "| rope" in (tmp_path / "generation.md").read_text()


@pytest.mark.slow
def test_what_is_compared_writes_the_same():
    backbone = TupeBackbone(
        VOCABULARY, 1, 2, 8, 8, max_sequence_length=8, attention_pattern="causal", dtype="float64"
    )
    scramble(backbone.weights)
    found = []
    for task in (TupeCausalLM, WithoutCache):
        model = task(backbone)
        model.compile(sampler="greedy")
        given = inputs(random_ids(2, 8), [3, 4])
        found.append(model.generate(given, stop_token_ids=None)["token_ids"])
    np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, found))
