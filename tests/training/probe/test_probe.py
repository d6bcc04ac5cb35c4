"""`training.probe`: runs that go on, scores that cannot be, and what is told of mistakes."""

import json
import shutil

import commands
import numpy as np
import pytest
from run_cases import cells, picture

from training.probe.settings import Settings
from training.probe.tasks import TASKS

SMALL = {
    "length": 24,
    "lengths": ["1x", "2x"],
    "groups": 2,
    "members": 2,
    "steps": 2,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "batch_size": 8,
    "xla": "off",
}


def words(out, *positions, **changes):
    return commands.words_of("--positions", *positions, out=out, **SMALL, **changes)


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    """A folder with the runs of two methods and two seeds, and what was printed."""
    out = tmp_path_factory.mktemp("probe") / "out"
    return out, commands.done("probe", *words(out, "none", "absolute", seeds=2))


@pytest.fixture
def copied(probed, tmp_path):
    return shutil.copytree(probed[0], tmp_path / "out")


def test_all_tasks_are_scored_at_all_lengths(probed):
    out, told = probed
    results = json.loads((out / "probe.json").read_text())
    assert list(results["methods"]) == ["none", "absolute"]
    assert [method["order"] for method in results["methods"].values()] == ["nowhere", "trained"]
    for method in results["methods"].values():
        assert list(method["scores"]) == list(TASKS)
        for by_length in method["scores"].values():
            assert list(by_length) == ["24", "48"]
            for score in by_length.values():
                assert score["mean"] == pytest.approx(np.mean(score["values"]), abs=1e-12)
                assert len(score["values"]) == 2
    assert results["violations"] == []
    assert results["findings"] == []
    tables = cells(told)
    assert [row[0] for row in tables[:3]] == ["method", "none", "absolute"]
    assert all(cell.endswith("*") for cell in tables[1][1:] if cell != tables[1][3])
    assert tables[0][3] == "majority"
    assert not any(cell.endswith("*") for cell in tables[2][1:])
    assert "No score is above its bound" in told
    assert (out / "probe.md").read_text().strip() in told
    picture(out / "probe.png")


def test_the_same_command_goes_on_and_others_are_refused(copied):
    times = {path: path.stat().st_mtime_ns for path in copied.glob("*/seed-*/metrics.json")}
    assert len(times) == 4
    shutil.rmtree(copied / "none" / "seed-1")
    ended = commands.run("probe", *words(copied, "none", "absolute", seeds=2))
    assert ended.code == 0
    assert "3 of 4 runs are there already" in ended.err
    kept = {path for path, time in times.items() if path.stat().st_mtime_ns == time}
    assert len(kept) == 3
    refused = commands.refusal("probe", *words(copied, "none", seeds=1, learning_rate=0.1), code=1)
    assert "made with other settings" in refused
    assert "learning_rate: 0.003 -> 0.1" in refused


def test_a_run_again_has_the_same_scores(copied):
    path = copied / "none" / "seed-0" / "metrics.json"
    before = json.loads(path.read_text())["scores"]
    shutil.rmtree(path.parent)
    commands.done("probe", *words(copied, "none", seeds=1))
    assert json.loads(path.read_text())["scores"] == before


def test_a_score_that_cannot_be_is_loud(copied):
    """Somebody's mistake, written into the metrics of a run."""
    path = copied / "none" / "seed-1" / "metrics.json"
    metrics = json.loads(path.read_text())
    metrics["scores"]["offset"]["48"] = 99.0
    path.write_text(json.dumps(metrics))
    told = commands.refusal("probe", *words(copied, "none", "absolute", seeds=2), code=1)
    assert "none cannot score above" in told
    assert "in offset at 48 tokens, since it knows order nowhere, and scored 99.00 %" in told
    page = (copied / "probe.md").read_text()
    assert page.index("Scores that cannot be") < page.index("Command:")
    metrics["scores"]["offset"]["48"], metrics["order"] = 0.0, "everywhere"
    path.write_text(json.dumps(metrics))
    told = commands.refusal("probe", *words(copied, "none", "absolute", seeds=2), code=1)
    assert told.startswith("probe: none must not see the order of tokens")


def test_mistakes_are_told_at_once_and_nothing_is_written(tmp_path):
    out = tmp_path / "out"

    def told(*more):
        return commands.refused_settings(Settings, "--out", out, *more)

    (line,) = told()
    assert line == (
        "probe: --positions must name the methods to probe, such as --positions none absolute "
        "tupe_r. Received: none"
    ).replace("probe: ", f"{line.split(':')[0]}: ")
    (line,) = told("--positions", "absolut")
    assert "There is no positional method 'absolut'; the nearest is 'absolute'" in line
    (line,) = told("--positions", "none", "--tasks", "ofset")
    assert f"--tasks must be of {list(TASKS)}; the nearest is 'offset'. Received: 'ofset'" in line
    (line,) = told("--positions", "none", "absolute", "--max-sequence-length", "64")
    assert line.endswith(
        "Rows must not be longer than the position table of absolute: lower --lengths, or raise "
        "--max-sequence-length. Received: rows of 128 tokens, max_sequence_length=64"
    )
    assert not commands_parse(out, "--positions", "none", "--max-sequence-length", "64").problems()
    lines = told("--positions", "none", "none", "--length", "25", "--hidden-dim", "30")
    assert len(lines) == 3
    lines = told(
        "--positions", "none", "--lengths", "2y", "33", "16", "34", "--tasks", *2 * ["offset"]
    )
    assert [line.rpartition("Received: ")[2] for line in lines] == [
        *("offset offset", "'2y'", "33, length=32", "16, length=32", "34, length=32"),
    ]
    assert not out.exists()


def commands_parse(out, *more):
    from training.command.settings import parse

    return parse(Settings, ["--out", str(out), *more])


def test_the_largest_k_of_a_method_is_checked_before_a_run(tmp_path):
    told = commands.refusal("probe", *words(tmp_path / "out", "shaw:k=500", seeds=1))
    assert "Received: k=500" in told


@pytest.mark.slow
def test_the_control_is_learned_and_order_is_not_without_positions(tmp_path):
    """Six minutes of two cores: `none` learns the majority, and `tupe_r` what `none` cannot."""
    told = commands.words_of("--positions", "none", "tupe_r", out=tmp_path / "out", seeds=2)
    commands.done("probe", *told)
    methods = json.loads((tmp_path / "out" / "probe.json").read_text())["methods"]
    for name in ("none", "tupe_r"):
        assert methods[name]["scores"]["majority"]["32"]["mean"] > 95
    for task, most in (("first_of_two", 70), ("offset", 30), ("nearest_mark", 60)):
        assert methods["none"]["scores"][task]["32"]["mean"] < most
    for task in ("first_of_two", "nearest_mark"):
        assert methods["tupe_r"]["scores"][task]["32"]["mean"] > 85
