"""A grid of runs: whole or not there, never twice, one process at a time."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from keras_tupe._commit import commit
from keras_tupe.trainer import NonFiniteError
from training.command.grid import Cell, Grid, converged, told

CELLS = [Cell(f"task/seed-{seed}", {"seed": seed, "rates": (1, 2)}) for seed in range(3)]


def score(cell, folder):
    (folder / "predictions.txt").write_text(str(cell.settings["seed"]))
    return {"score": cell.settings["seed"] / 3}


def test_a_run_that_is_there_is_not_done_again(tmp_path, capsys):
    with Grid(tmp_path) as grid:
        first = grid.run(CELLS[:2], score)
    done = []
    with Grid(tmp_path) as grid:
        again = grid.run(CELLS, lambda cell, folder: done.append(cell.name) or score(cell, folder))
    assert done == ["task/seed-2"]
    assert list(again) == [cell.name for cell in CELLS]
    assert {name: again[name] for name in first} == first
    assert (tmp_path / "task/seed-1/predictions.txt").read_text() == "1"
    assert "2 of 3 runs are there already" in capsys.readouterr().err


def test_every_run_knows_its_commit(tmp_path):
    with Grid(tmp_path) as grid:
        grid.run(CELLS, score)
        names = [cell.name for cell in CELLS]
        assert grid.commits(names) == str(commit())
        for name, known in zip(names, ('{"commit": "0a"}', "[", '{"commit": "0b"}'), strict=True):
            (tmp_path / name / "origin.json").write_text(known)
        assert grid.commits(names) == "0a, 0b, unknown"


def test_the_time_left_is_that_of_the_work_left(tmp_path, capsys):
    cells = [Cell("short", {}, work=1), Cell("long", {}, work=200)]
    with Grid(tmp_path) as grid:
        grid.run(cells, lambda cell, folder: time.sleep(0.05) or {})
    told = capsys.readouterr().err
    number, unit = re.search(r"run 1 of 2, short; (\d+) (s|min) left", told).groups()
    left = float(number) * {"s": 1, "min": 60}[unit]
    assert left >= 10  # 200 times 0.05 s or more; a 200th of that if runs counted alike
    assert "run 2 of 2, long; 0 s left" in told


def test_a_run_that_fails_leaves_nothing_and_the_ones_before_stay(tmp_path):
    def fails(cell, folder):
        if cell.settings["seed"] == 1:
            raise RuntimeError("diverged")
        return score(cell, folder)

    with Grid(tmp_path) as grid, pytest.raises(RuntimeError, match="diverged"):
        grid.run(CELLS, fails)
    assert sorted(path.name for path in (tmp_path / "task").iterdir()) == ["seed-0"]


def test_a_run_that_diverges_is_a_result_and_the_others_go_on(tmp_path, capsys):
    def diverges(cell, folder):
        if cell.settings["seed"] == 0:
            raise NonFiniteError(step=7, skipped_steps=1)
        return score(cell, folder)

    with Grid(tmp_path) as grid:
        found = grid.run(CELLS, diverges, lambda metrics: metrics["score"], may_diverge=True)
        assert found["task/seed-0"] == {"not_finite_at_step": 7}
        assert grid.run(CELLS, pytest.fail) == found  # it is not done again
    assert "task/seed-0: diverged at step 7; " in capsys.readouterr().err
    done, diverged = converged(found, 0.1)
    assert [*done] == [cell.name for cell in CELLS if cell.settings["seed"]]
    assert told(diverged) == ["Diverged, and in no number here: task/seed-0 at step 7."]
    assert told({}) == []
    message = "not finite at step 7. Lower --learning-rate, .*Received: learning_rate=0.1"
    with pytest.raises(ValueError, match=message):
        converged({"task/seed-0": found["task/seed-0"]}, 0.1)


def test_other_settings_are_refused_by_name_before_anything_runs(tmp_path):
    with Grid(tmp_path) as grid:
        grid.run(CELLS[1:2], score)
        changed = Cell("task/seed-1", {"seed": 1, "rates": (1, 3)})
        done = []
        with pytest.raises(ValueError, match=r"task/seed-1, rates: \[1, 2\] -> \[1, 3\]"):
            grid.run([CELLS[0], changed], lambda *_: done.append(1))
    assert not done


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "task/seed-0").mkdir(parents=True)
    with Grid(tmp_path) as grid, pytest.raises(ValueError, match="move this one away"):
        grid.run(CELLS, score)


def test_an_out_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="--out must be a folder"):
        Grid(tmp_path / "file").__enter__()


KILLED = """
import sys, time
from keras_tupe.trainer import NonFiniteError
from training.command.grid import Cell, Grid, converged, told

def do(cell, folder):
    (folder / "part").write_text("x")
    if cell.settings["seed"] == 1:
        print("in the second", flush=True)
        time.sleep(600)
    return {"score": 1.0}

with Grid(sys.argv[1]) as grid:
    grid.run([Cell(f"task/seed-{seed}", {"seed": seed}) for seed in range(3)], do)
"""


@pytest.mark.slow
def test_a_second_process_is_refused_and_a_killed_one_leaves_no_half_run(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "in the second\n"
        with pytest.raises(ValueError, match=f"Another process .* process {process.pid}"):
            Grid(tmp_path).__enter__()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    partial = [path.name for path in (tmp_path / "task").iterdir()]
    assert len(partial) == 2  # a whole run and what the kill left
    cells = [Cell(f"task/seed-{seed}", {"seed": seed}) for seed in range(3)]
    done = []
    start = time.monotonic()
    with Grid(tmp_path) as grid:
        found = grid.run(cells, lambda cell, _: done.append(cell.name) or {"score": 1.0})
    assert time.monotonic() - start < 60
    assert done == ["task/seed-1", "task/seed-2"]
    assert list(found.values()) == [{"score": 1.0}] * 3
    names = sorted(path.name for path in (tmp_path / "task").iterdir())
    assert names == ["seed-0", "seed-1", "seed-2"]
    assert json.loads((tmp_path / "task/seed-2/settings.json").read_text()) == {"seed": 2}
