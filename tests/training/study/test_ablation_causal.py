"""Reports on ablations of causal models: perplexities, and losses by position."""

import json
import math

import numpy as np
import pytest
from ablation_cases import finish, report
from run_cases import SIZES, cells, make_run, picture

from training.pretrain import settings as pretrain_settings
from training.studies.ablation.settings import Settings

STEPS = 300
CHARACTERS = 4.5
# Losses above those of `absolute` by seed, positions, and loss at the end of the rows.
METHODS = {"absolute": ((0.0, 0.2), 16, 3.0), "alibi": ((-0.5, -0.2), 64, 2.9)}


def bins(positions, last, shift):
    """Sixteen bins, whose losses fall on a line."""
    width = positions // 16
    losses = np.linspace(4.0, last, 16) + shift
    return [
        {"first": n * width + 1, "last": (n + 1) * width, "tokens": 100, "loss": float(loss)}
        for n, loss in enumerate(losses)
    ]


@pytest.fixture
def out(tmp_path):
    for name, (shifts, positions, last) in METHODS.items():
        for seed, shift in enumerate(shifts):
            folder = tmp_path / name / f"seed-{seed}" / "pretrain"
            make_run(folder, STEPS, shift)
            chosen = {"position": name, "seed": seed, "steps": STEPS, "objective": "causal_lm"}
            settings = vars(pretrain_settings.Settings(**chosen, warmup_steps=9, out=str(folder)))
            record = {
                "command": "python -m training.pretrain",
                "commit": "0123abc",
                "settings": {k: v for k, v in settings.items() if k != "given"},
                "data": {"rows_hash": "abc", "length": 16},
                "backend": "tensorflow",
                "held_out": {"predictions": 1000.0, "characters": 1000 * CHARACTERS},
            }
            (folder / "settings.json").write_text(json.dumps(record))
            (folder / "preset").mkdir()
            (folder / "preset" / "config.json").write_text(json.dumps({"config": SIZES}))
            (folder / "preset" / "metadata.json").write_text('{"parameter_count": 7}')
            task = folder.parent / "perplexity"
            task.mkdir()
            found = {
                "command": "python -m training.evaluate perplexity PRESET --data long",
                "positions": positions,
                "trained_length": 16,
                "numbers": {},
                "bins": bins(positions, last, shift),
            }
            (task / "study.json").write_text(json.dumps(found))
    return finish(tmp_path)


def losses(name):
    return [3 + shift + 6 * np.exp(-STEPS / 60) for shift in METHODS[name][0]]


def test_the_table_has_perplexities_of_tokens_and_of_characters(out):
    content = report(out)
    text = (out / "study.md").read_text()
    table = text.split("## Held-out loss")[1].split("##")[0]
    header, *rows = cells(table)
    assert header[2:6] == [
        *("held-out loss", "perplexity per token", "perplexity per character"),
        "next-token accuracy",
    ]
    assert "masked" not in text
    for row in rows[-2:]:
        found = losses(row[0])
        for cell, size in ((row[3], 1), (row[4], CHARACTERS)):
            mean = np.mean(np.exp(np.divide(found, size)))
            assert cell.split(" +- ")[0] == f"{mean:.4g}"
            assert " +- " in cell
    assert content["units"]["perplexity per token"] == "perplexity"
    scores = content["methods"]["alibi"]["scores"]
    mean = scores["perplexity per token"]["mean"]
    np.testing.assert_allclose(mean, np.mean(np.exp(losses("alibi"))), rtol=1e-5)


def test_a_method_without_positions_has_none_in_the_table_and_the_picture_is_drawn(out):
    content = report(out)
    text = (out / "study.md").read_text()
    assert content["seeds"] == [0, 1]
    header, *rows = cells(text.split("## Perplexity by position")[1].split("##")[0])
    assert header[2:] == [f"{n * 8 + 1} to {n * 8 + 8}" for n in range(8)]
    by_name = {row[0]: row[2:] for row in rows}
    assert by_name["absolute"][2:] == ["-"] * 6
    assert "-" not in by_name["alibi"]
    shifts, positions, last = METHODS["alibi"]
    one = [bins(positions, last, shift)[-2:] for shift in shifts]
    expected = np.mean([math.exp((a["loss"] + b["loss"]) / 2) for a, b in one])
    assert by_name["alibi"][-1].split(" +- ")[0] == f"{expected:.4g}"
    assert "The rows of training had 16 tokens." in text
    picture(out / "positions.png")


def test_long_rows_are_for_causal_models(tmp_path):
    chosen = {"positions": ("rope",), "long_rows": str(tmp_path), "baseline": "rope"}
    (line,) = [x for x in Settings(**chosen).problems() if x.startswith("--long-rows")]
    assert "--long-rows is for --objective causal_lm" in line
    causal = Settings(**chosen, objective="causal_lm").problems()
    assert not any(x.startswith("--long-rows") for x in causal)
