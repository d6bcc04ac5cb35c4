"""`kill -9` at any moment of a grid: the same command ends with the same table, to the bit."""

import signal

import glue_cases as cases
import pytest
from commands import ended, kill, log_of, wait_until

RATES = ["0.01", "0.003"]
OPTIONS = {"learning_rates": RATES, "seeds": 2, "epochs": 3}
TASKS = ("sst2", "stsb")


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    return cases.save_preset(tmp_path_factory.mktemp("preset") / "preset")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return cases.write_tasks(tmp_path_factory.mktemp("data"), *TASKS, train=160, test=9)


def is_at(out, place):
    """Whether a grid has come to a place: a run that has begun to write."""
    folder, name = place.rsplit("/", 1)
    if folder.startswith("test/"):
        return any(out.glob(f"{folder}/.seed-*.partial/log.csv"))
    return any((out / folder).glob(f".{name}.*.partial/log.csv")) or (out / place).exists()


@pytest.mark.slow
def test_a_grid_killed_three_times_ends_as_if_nothing_had_happened(preset, data, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert ended(cases.start(preset, data, whole, *TASKS, submission=True, **OPTIONS)) == 0, log_of(
        whole
    )
    places = ["sst2/lr-0.01/seed-1", "stsb/lr-0.01/seed-0", "test/stsb/lr-*/seed-*"]
    for place in places:
        process = cases.start(preset, data, out, *TASKS, submission=True, **OPTIONS)
        assert wait_until(lambda place=place: is_at(out, place), process), log_of(out)
        assert kill(process) == -signal.SIGKILL, log_of(out)
        # written before the runs for the server, and again with what is said of them
        assert (out / "results.json").exists() == place.startswith("test/")
    process = cases.start(preset, data, out, *TASKS, submission=True, **OPTIONS)
    assert ended(process) == 0, log_of(out)
    assert "runs are there already." in log_of(out)
    assert cases.scores(out) == cases.scores(whole)
    files = [
        {
            str(path.relative_to(folder)): path.read_bytes()
            for pattern in ("*.tsv", "settings.json")
            for path in folder.rglob(pattern)
        }
        for folder in (out, whole)
    ]
    assert files[0] == files[1]
    assert not list(out.rglob("*.partial*"))
