"""The quickstart, run as a user runs it."""

import json
import random
import re
import subprocess
import sys

import keras_hub
import numpy as np
import pytest

import keras_tupe

METHOD_FILE = '''
"""Added waves of one frequency."""

import keras
import numpy as np

from keras_tupe.positions import PositionMethod
from keras_tupe.positions._oracle import content_logits


@keras.saving.register_keras_serializable(package="tests")
class OneWave(keras.layers.Layer):
    def call(self, hidden_states):
        places = keras.ops.arange(keras.ops.shape(hidden_states)[1], dtype="float32")
        return hidden_states + keras.ops.expand_dims(keras.ops.sin(places), -1)

    def compute_output_shape(self, shape):
        return shape


def logits_oracle(tokens, weights, dims, options):
    return content_logits(tokens + np.sin(np.arange(len(tokens)))[:, None], weights, dims, 1)


METHOD = PositionMethod(
    summary="one wave",
    source="this test",
    logits_oracle=logits_oracle,
    embed=lambda dims, options: OneWave(dtype=dims.dtype, name="position_embedding"),
)
'''


def write_corpus(path):
    """Writes 400 documents of made-up but orderly English."""
    generator = random.Random(1)
    subjects = [
        "the cat",
        "a small dog",
        "my old friend",
        "the young king",
        "her teacher",
        "this machine",
    ]
    verbs = ["sees", "follows", "finds", "carries", "paints", "remembers", "watches", "repairs"]
    objects = ["the red ball", "a heavy stone", "an open door", "the long river", "two white birds"]
    places = ["in the garden", "under the bridge", "near the village", "behind the house"]
    times = ["before the rain", "after dinner", "on a cold morning", "during the long winter"]

    def sentence():
        words = [generator.choice(part) for part in (subjects, verbs, objects, places, times)]
        return f"{' '.join(words)} and then {generator.choice(subjects)} goes home.".capitalize()

    documents = ("\n".join(sentence() for _ in range(5)) for _ in range(400))
    path.write_text("\n\n".join(documents), encoding="utf-8")


def quickstart(folder, *arguments):
    result = subprocess.run(
        [sys.executable, "-m", "training.quickstart", *arguments, "--out", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_quickstart_trains_exports_and_answers_on_a_text_of_ones_own(tmp_path):
    write_corpus(tmp_path / "corpus.txt")
    (tmp_path / "one_wave.py").write_text(METHOD_FILE)
    out = tmp_path / "run"
    printed = quickstart(
        out,
        "--corpus",
        str(tmp_path / "corpus.txt"),
        "--positions",
        f"tupe_r,{tmp_path / 'one_wave.py'}",
        "--minutes",
        "0.05",
    )
    rows = re.findall(r"^\| (tupe_r|one_wave) +\|.*%.*%", printed, re.MULTILINE)
    assert rows == ["tupe_r", "one_wave"]
    parity = re.search(r"largest relative difference (\S+)", printed)
    assert float(parity[1]) <= 1e-5
    assert "modules of keras_tupe in this process: 0" in printed

    card = json.loads((out / "card.json").read_text())
    best = card["metrics"]["position"]
    assert card["config"]["position"] == best
    assert len(card["all_methods"]) == 2
    assert card["data"]["documents"] <= 400
    assert {path.name for path in out.iterdir()} - {"assets"} == {
        "card.json",
        "curves.png",
        "example.npz",
        "fingerprint.pb",
        "position_bias_tupe_r.png",
        "preset",
        "saved_model.pb",
        "text",
        "variables",
    }
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    check_preset(out, best, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "__pycache__",
        "corpus.txt",
        "one_wave.py",
        "run",
    ]


def check_preset(out, best, tmp_path):
    """The preset gives the stored answers, through KerasHub's own class."""
    if best == "one_wave":
        keras_tupe.positions.load_file(tmp_path / "one_wave.py")
    try:
        model = keras_hub.models.MaskedLM.from_preset(str(out / "preset"))
    finally:
        keras_tupe.positions.METHODS.pop("one_wave", None)
        keras_tupe.positions._LOADED_FILES.pop("one_wave", None)
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
