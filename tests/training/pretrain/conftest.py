"""Rows and a whole run, made once for all tests of a process; tests leave both as they are."""

import commands
import pretrain_cases as cases
import pytest


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    return cases.make_rows(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="session")
def done(rows, tmp_path_factory):
    """A run that came to its end, and what it printed and told."""
    out = tmp_path_factory.mktemp("done") / "run"
    printed, told = cases.run(rows, out, **cases.KEPT)
    return out, printed, told


@pytest.fixture(scope="session")
def whole(rows, tmp_path_factory):
    """An undisturbed run in a process of its own, as those are that it is compared with."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert commands.ended(cases.start(rows, out)) == 0, commands.log_of(out)
    return out
