"""`kill -9` at any moment: the same command goes on, to the bit as if nothing had happened."""

import contextlib
import os
import random
import signal
import time

import pretrain_cases as cases
import pytest
from pretrain_cases import ended, start

# before a checkpoint is whole; when a longer log is written; between a checkpoint and the next
DURING_A_SAVE = ("open", r"\.partial_12/checkpoint\.json", 1)


@pytest.fixture(scope="module")
def processes():
    return cases.processes()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return cases.make_rows(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def whole(processes, rows, tmp_path_factory):
    """An undisturbed run."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert ended(start(processes, rows, out)) == 0, cases.log_of(out)
    return out


def kill(process):
    """Kills a process, which may have ended by itself just before."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def assert_whole_files(out):
    """No file that has its name is broken, whatever was killed."""
    for step in cases.steps(out):
        assert {p.name for p in cases.checkpoint(out, step).iterdir()} == {
            "checkpoint.json",
            "state.npz",
        }
        assert len(cases.state(out, step)) > 50
    for name in ("log.csv", "valid.csv"):
        path = out / name
        if path.exists():
            lines = path.read_text().splitlines()
            assert len({line.count(",") for line in lines}) == 1


def test_a_run_killed_three_times_ends_as_if_nothing_had_happened(processes, rows, whole, tmp_path):
    out = tmp_path / "run"
    process = start(processes, rows, out, DURING_A_SAVE)
    assert ended(process) == -signal.SIGKILL, cases.log_of(out)
    assert cases.steps(out) == [6]
    assert (out / "checkpoints" / ".partial_12").exists()
    assert_whole_files(out)

    process = start(processes, rows, out)  # in the middle of training
    written = out / "log.csv"
    assert cases.wait_until(
        lambda: written.exists() and "\n14," in written.read_text(), process
    ), cases.log_of(out)
    time.sleep(random.Random(7).uniform(0.0, 0.05))
    kill(process)
    assert cases.steps(out)[-1] in (12, 18)
    assert_whole_files(out)

    # when the last checkpoint is there, and the oldest is about to go
    process = start(processes, rows, out, ("os.rename", r"step_0000000012", 1))
    assert ended(process) == -signal.SIGKILL, cases.log_of(out)
    assert cases.steps(out) == [12, 18, 24]
    assert_whole_files(out)

    assert ended(start(processes, rows, out)) == 0, cases.log_of(out)
    cases.assert_same_run(out, whole, 24)
