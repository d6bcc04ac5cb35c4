"""The command from end to end, on a tiny task that can be learned."""

import json
import shutil

import glue_cases as cases
import numpy as np
import pytest

from keras_tupe.metrics import accuracy
from training.finetune_glue.protocol import TASKS

DEV = 120
RUN = {"train": 400, "dev": DEV, "words": 3}
# shuffled labels are learned word by word, so that as many coins are thrown as words tell a class
THREE_ERRORS = 3 * 100 * np.sqrt(0.25 / (2 * len(cases.TOLD[0])))


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    return cases.save_preset(tmp_path_factory.mktemp("preset") / "preset")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return cases.write_tasks(tmp_path_factory.mktemp("data"), "sst2", **RUN)


@pytest.fixture(scope="module")
def grid(preset, data, tmp_path_factory):
    """The folder of a grid of two seeds, and what was printed."""
    out = tmp_path_factory.mktemp("grid") / "out"
    _, printed, told = cases.run(preset, data, out, "sst2", seeds=2)
    return out, printed, told


def predictions(folder):
    """Returns columns of the file of dev predictions."""
    lines = [x.split("\t") for x in (folder / "SST-2.dev.tsv").read_text().splitlines()]
    assert lines[0] == ["index", "label", "prediction", "outputs"]
    return [np.array(column) for column in zip(*lines[1:], strict=True)]


def test_a_task_that_can_be_learned_is_learned(grid):
    out, _, _ = grid
    column = cases.results(out)["tasks"]["sst2"]["columns"]["sst2"]
    assert column["score"] > 80
    assert column["constant"] == 50


def test_each_run_is_a_folder_with_all_that_it_made(grid):
    out, _, _ = grid
    found = cases.results(out)["tasks"]["sst2"]["columns"]["sst2"]["rates"]["0.01"]
    for seed in (0, 1):
        folder = out / "sst2" / "lr-0.01" / f"seed-{seed}"
        names = {path.name for path in folder.iterdir()}
        assert {"settings.json", "metrics.json", "log.csv", "SST-2.dev.tsv"} <= names
        settings = json.loads((folder / "settings.json").read_text())
        assert (settings["task"], settings["learning_rate"], settings["seed"]) == (
            "sst2",
            0.01,
            seed,
        )
        index, label, prediction, outputs = predictions(folder)
        assert index.astype(int).tolist() == list(range(DEV))
        again = [np.argmax(np.array(text.split(), "float32")) for text in outputs]
        assert prediction.astype(int).tolist() == again
        assert found[seed] == 100 * accuracy(label.astype(int), prediction.astype(int))


def test_the_record_says_how_it_was_made(grid, preset):
    out, printed, _ = grid
    found = cases.results(out)
    assert found["command"].startswith(f"python -m training.finetune_glue {preset} --data")
    assert {"commit", "machine", "seconds", "protocol", "preset", "position"} <= found.keys()
    assert found["position"] == "absolute"
    assert found["seeds"] == [0, 1]
    assert found["average_is"] == "mean of 1 of 9 columns"
    assert found["average"] == found["tasks"]["sst2"]["columns"]["sst2"]["score"]
    assert "learning rates 0.01, not 2e-05, 3e-05, 4e-05, 5e-05" in found["changes"]
    assert "epochs 4, not 10 (SST-2)" in found["changes"]
    assert "length 24, not 512" in found["changes"]
    assert (out / "results.md").read_text() in printed
    assert "Mean of 1 of 9 columns: " in printed
    assert (out / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_a_grid_that_lost_a_run_makes_it_again_to_the_bit(grid, preset, data, tmp_path):
    whole, _, _ = grid
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    lost = out / "sst2" / "lr-0.01" / "seed-1"
    # what `kill -9` leaves: a part of a run under another name, and no table
    lost.rename(lost.with_name(".seed-1.123.partial"))
    for name in ("results.json", "results.md", "grid.png"):
        (out / name).unlink()
    kept = out / "sst2" / "lr-0.01" / "seed-0" / "metrics.json"
    before = kept.stat().st_mtime_ns
    _, _, told = cases.run(preset, data, out, "sst2", seeds=2)
    assert "1 of 2 runs are there already." in told
    assert kept.stat().st_mtime_ns == before
    assert cases.scores(out) == cases.scores(whole)
    for name in ("SST-2.dev.tsv", "settings.json"):
        again = (lost / name).read_bytes()
        assert again == (whole / "sst2" / "lr-0.01" / "seed-1" / name).read_bytes()
    assert not list(out.rglob("*.partial*"))


def test_a_run_of_other_rows_or_settings_is_not_taken_for_ours(grid, preset, data, tmp_path):
    out, _, _ = grid
    message = cases.failure(preset, data, out, "sst2", seeds=2, dropout=0.2)
    assert "made with other settings" in message
    assert "dropout: 0.0 -> 0.2" in message
    other = cases.write_tasks(tmp_path / "data", "sst2", seed=1, **RUN)
    message = cases.failure(preset, other, out, "sst2", seeds=2)
    assert "rows: " in message
    other = cases.save_preset(tmp_path / "preset", seed=1)
    assert "preset: " in cases.failure(other, data, out, "sst2", seeds=2)


@pytest.mark.slow
def test_shuffled_labels_score_as_chance(preset, data, tmp_path):
    found, printed, _ = cases.run(preset, data, tmp_path / "out", "sst2", random_labels=True)
    score = found["tasks"]["sst2"]["columns"]["sst2"]["score"]
    assert abs(score - 50) < THREE_ERRORS
    assert found["random_labels"]
    assert "shuffled training labels: a control" in printed


# === Slow: all tasks, interruptions, the control over seeds ===


@pytest.mark.slow
def test_all_columns_of_the_papers_come_with_files_for_glues_server(preset, tmp_path):
    data = cases.write_tasks(tmp_path / "data", *TASKS, test=7, **RUN)
    out = tmp_path / "out"
    found, printed, _ = cases.run(preset, data, out, submission=True, epochs=8)
    columns = {x: y for task in found["tasks"].values() for x, y in task["columns"].items()}
    order = ["mnli_m", "mnli_mm", "qnli", "qqp", "sst2", "cola", "mrpc", "rte", "stsb"]
    assert list(columns) == order
    assert {name for name, column in columns.items() if column["score"] > 80} == set(columns)
    assert found["average_is"] == "mean of all 9 columns"
    assert found["average"] == pytest.approx(np.mean([x["score"] for x in columns.values()]))
    assert "Mean of all 9 columns: " in printed
    assert "trained again it scores otherwise" not in printed
    files = {path.name: path.read_text() for path in (out / "submission").iterdir()}
    assert set(files) == {
        f"{x}.tsv"
        for x in ("MNLI-m", "MNLI-mm", "QNLI", "QQP", "SST-2", "CoLA", "MRPC", "RTE", "STS-B")
    }
    for text in files.values():
        header, *lines = text.splitlines()
        assert header == "index\tprediction"
        assert [line.split("\t")[0] for line in lines] == list(map(str, range(7)))
    seconds = [json.loads(path.read_text())["seconds"] for path in out.rglob("metrics.json")]
    assert len(seconds) == 16
    assert found["seconds"] == pytest.approx(sum(seconds))
    # the same command again trains nothing
    _, _, told = cases.run(preset, data, out, submission=True, epochs=8)
    assert "8 of 8 runs are there already." in told


@pytest.mark.slow
def test_the_other_protocol_reports_f1(preset, tmp_path):
    data = cases.write_tasks(tmp_path / "data", "mrpc", "qqp", "mnli", "sst2", **RUN)
    out = tmp_path / "out"
    found, printed, _ = cases.run(preset, data, out, protocol="huang", seeds=None, epochs=1)
    assert {task: entry["metric"] for task, entry in found["tasks"].items()} == {
        "mnli": "accuracy",
        "qqp": "f1",
        "sst2": "accuracy",
        "mrpc": "f1",
    }
    assert found["average_is"] == "mean of 5 of 9 columns"
    assert "## MRPC (F1, %)" in printed


@pytest.mark.slow
def test_a_control_is_at_chance_where_true_labels_are_learned(preset, data, tmp_path):
    true, _, _ = cases.run(preset, data, tmp_path / "true", "sst2", seeds=3)
    control, _, _ = cases.run(preset, data, tmp_path / "c", "sst2", seeds=3, random_labels=True)
    scores = [x["tasks"]["sst2"]["columns"]["sst2"]["rates"]["0.01"] for x in (true, control)]
    assert min(scores[0]) > 90
    assert abs(np.mean(scores[1]) - 50) < THREE_ERRORS / np.sqrt(3)
    assert len(set(scores[1])) > 1  # each seed has a shuffling of its own


@pytest.mark.slow
def test_a_rate_that_diverges_is_told_and_does_not_win(preset, data, tmp_path):
    found, printed, _ = cases.run(
        preset, data, tmp_path / "out", "sst2", learning_rates=["0.01", "1e30"], clip_norm=1e30
    )
    column = found["tasks"]["sst2"]["columns"]["sst2"]
    assert column["rates"]["1e+30"] == [None]
    assert column["best_rate"] == 0.01
    assert "failed" in printed
