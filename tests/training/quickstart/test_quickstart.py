"""The quickstart, run as a user runs it."""

import json
import pathlib
import re
import subprocess
import sys

import keras_hub
import numpy as np
import pytest
from quickstart_cases import write_corpus

import keras_tupe
from training.quickstart import run

METHOD_FILE = pathlib.Path(__file__).parents[3] / "examples" / "linear_slope.py"


def ask(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "training.quickstart", *arguments, "--out", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )


def quickstart(folder, *arguments):
    result = ask(folder, *arguments)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize(("steps", "points"), [(2200, 11), (2100, 11), (400, 8), (45, 5), (3, 3)])
def test_the_curve_has_a_point_for_each_eleventh_of_the_steps_or_fewer(steps, points):
    assert run.curve_points(steps) == points


@pytest.mark.slow
def test_quickstart_takes_a_text_and_a_method_of_ones_own(tmp_path, loaded_files):
    write_corpus(tmp_path / "corpus.txt")
    out = tmp_path / "run"
    settings = {"corpus": str(tmp_path / "corpus.txt"), "positions": str(METHOD_FILE)}
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    refused = ask(out, *words, "--minutes", "0.02").stderr
    assert not out.exists()
    for _ in range(4):  # a machine that gets busier names more minutes
        minutes = re.search(r"at least (\S+) minutes", refused)[1]
        result = ask(out, *words, "--minutes", minutes)
        if result.returncode != 1:
            break
        refused = result.stderr
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    printed = result.stdout
    assert re.search(r"^\| linear_slope +\|.*%.*%", printed, re.MULTILINE), "no row in the table"
    parity = re.search(r"largest relative difference (\S+)", printed)
    assert float(parity[1]) <= 1e-5
    assert "modules of keras_tupe in this process: 0" in printed

    card = json.loads((out / "card.json").read_text())
    assert card["config"]["position"] == card["metrics"]["position"] == "linear_slope"
    assert card["data"]["documents"] <= 400
    assert {path.name for path in out.iterdir()} - {"assets"} == {
        "assets.extra",
        "card.json",
        "curves.png",
        "example.npz",
        "fingerprint.pb",
        "position_bias_linear_slope.png",
        "preset",
        "saved_model.pb",
        "text",
        "variables",
    }
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.txt", "run"}

    keras_tupe.positions.load_file(METHOD_FILE)
    model = keras_hub.models.MaskedLM.from_preset(str(out / "preset"))
    example = np.load(out / "example.npz")
    inputs = {
        "token_ids": example["input_word_ids"],
        "padding_mask": example["input_mask"],
        "mask_positions": example["masked_lm_positions"],
    }
    np.testing.assert_allclose(model(inputs), example["mlm_logits"], atol=1e-4)
    assert isinstance(model.preprocessor.tokenizer, keras_tupe.TupeTokenizer)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_positions_matter_in_the_quickstart_as_the_readme_says(tmp_path, seed):
    quickstart(tmp_path / "run", "--seed", str(seed))
    card = json.loads((tmp_path / "run" / "card.json").read_text())
    results = {result["position"]: result for result in card["all_methods"]}
    for score in ("accuracy", "word_order"):
        none, absolute, tupe_r = (results[name][score] for name in ("none", "absolute", "tupe_r"))
        assert absolute >= none + 0.10
        assert tupe_r >= absolute - 0.01
    assert abs(results["none"]["word_order"] - 0.5) <= 0.001
