"""Rows and a whole run, made once for all processes of a session; tests leave both as they are."""

import json

import commands
import pretrain_cases as cases
import pytest
from made_once import made_once


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    return made_once(tmp_path_factory, "pretrain_rows", cases.make_rows) / "rows"


@pytest.fixture(scope="session")
def done(rows, tmp_path_factory):
    """A run that came to its end, and what it printed and told."""

    def make(folder):
        folder.mkdir()
        said = cases.run(rows, folder / "run", **cases.KEPT)
        (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")

    folder = made_once(tmp_path_factory, "pretrain_done", make)
    printed, told = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    return folder / "run", printed, told


@pytest.fixture(scope="session")
def whole(rows, tmp_path_factory):
    """An undisturbed run in a process of its own, as those are that it is compared with."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert commands.ended(cases.start(rows, out)) == 0, commands.log_of(out)
    return out


@pytest.fixture(scope="session")
def run_of(rows, done, tmp_path_factory):
    """A function: name of an objective -> a run that came to its end, and what it printed."""

    def found(name):
        if name == "masked_lm":
            return done[:2]

        def make(folder):
            folder.mkdir()
            printed, _ = cases.run(rows, folder / "run", **cases.RUNS[name])
            (folder / "printed.txt").write_text(printed, encoding="utf-8")

        folder = made_once(tmp_path_factory, f"pretrain_{name}", make)
        return folder / "run", (folder / "printed.txt").read_text(encoding="utf-8")

    return found
