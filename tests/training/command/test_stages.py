import contextlib
import io
import itertools
import os
import re
import tempfile
import time

import pytest

from training.command.stages import Stages


class Clock:
    """Seconds that a test moves on."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


def make(clock, *planned, **settings):
    settings = {"tick_seconds": None, "stream": io.StringIO(), **settings}
    stages = Stages("demo", clock=clock, **settings)
    for name, seconds, kind in planned:
        stages.expect(name, seconds, kind)
    return stages


TWO_METHODS = [
    ("reading", 10, ""),
    ("a: compiling", 15, "compiling"),
    ("a: training", 60, "training"),
    ("b: compiling", 15, "compiling"),
    ("b: training", 60, "training"),
    ("exporting", 20, ""),
]
TRUE_SECONDS = {"reading": 20, "compiling": 45, "training": 90, "exporting": 40}


def work_through(stages, clock, look):
    """Goes through all stages in the time that they really take; calls `look` after each second."""
    for name, _, kind in TWO_METHODS:
        stages.begin(name)
        count = TRUE_SECONDS[kind or name]
        for second in range(1, count + 1):
            clock.now += 1.0
            if kind != "compiling":  # it tells nothing
                stages.at(second / count)
            look()


def test_the_time_left_counts_all_stages_falls_and_ends_at_nothing(clock):
    stages = make(clock, *TWO_METHODS)
    assert stages.left == 180  # compiling is counted before anything was compiled
    left, whole = [], sum(TRUE_SECONDS[kind or name] for name, _, kind in TWO_METHODS)
    start = clock.now
    work_through(stages, clock, lambda: left.append((whole - (clock.now - start), stages.left)))
    stages.finish()
    assert stages.left == 0
    assert left[-1][1] == pytest.approx(0, abs=1e-9)
    # once each kind of stage has been seen, it is right to the second, but for the last stage
    seen = [(true, told) for true, told in left if true <= 45 + 90 + 40]
    assert all(abs(true - told) <= 25 for true, told in seen)
    assert all(told <= 1.35 * true + 1 for true, told in left)
    rises = [after - before for (_, before), (_, after) in itertools.pairwise(left)]
    assert sum(rise > 0 for rise in rises) < len(rises) / 3
    assert stages.seconds["b: compiling"] == 45


def test_stages_of_a_kind_are_corrected_by_the_first_of_them(clock):
    stages = make(clock, ("a", 10, "fit"), ("b", 30, "fit"), ("end", 5, ""))
    stages.begin("a")
    clock.now += 20
    stages.at(1.0)
    assert stages.left == pytest.approx(60 + 5)  # b by the speed of a, which is not over
    stages.begin("b")
    assert stages.left == pytest.approx(60 + 5 * 21.5 / 11.5)  # a tenth of the guesses is doubt
    clock.now += 60
    stages.begin("end")
    assert stages.seconds == {"a": 20, "b": 60}
    assert stages.left > 5, "what is only guessed follows the machine"


def test_what_was_measured_is_not_corrected_by_other_stages(clock):
    stages = make(clock, ("read", 10, ""), ("train", 100, ""))
    stages.expect("train", 70, measured=True)
    stages.begin("read")
    clock.now += 40
    stages.begin("train")
    assert stages.left == 70


def test_stages_that_are_left_out_do_not_count(clock):
    stages = make(clock, ("read", 10, ""), ("count", 50, ""), ("pack", 30, ""))
    stages.begin("pack")
    assert stages.left == 30
    clock.now += 30
    stages.finish()
    assert stages.seconds == {"pack": 30}


def test_a_stage_that_says_nothing_moves_on_and_never_ends_before_it_does(clock):
    stages = make(clock, ("compile", 20, ""), ("train", 40, ""))
    stages.begin("compile")
    clock.now += 15
    assert stages.left == 5 + 40
    clock.now += 85
    assert 40 < stages.left < 60


def test_what_was_spent_before_is_a_part_of_the_whole(clock):
    stages = make(clock, ("train", 30, ""), spent=10.0)
    stages.begin("train")
    assert stages.taken == 10
    assert stages.share == 0.25


def test_a_log_has_a_line_a_minute_with_stage_share_and_time_left(clock):
    stages = make(clock, *TWO_METHODS)
    work_through(stages, clock, stages.refresh)
    stages.finish()
    lines = stages._stream.getvalue().splitlines()
    assert len(lines) == 330 // 60
    form = r"demo: (\d+)% done, \d\d:\d\d left: (reading|exporting|[ab]: \w+)( \(\d+%\))?"
    shares = [int(re.fullmatch(form, line)[1]) for line in lines]
    assert shares == sorted(shares)
    stages.at(0.5, "loss 4.2")  # after the end nothing is written
    assert stages._stream.getvalue().splitlines() == lines


def test_a_terminal_has_one_bar_that_never_goes_back(clock):
    stages = make(clock, *TWO_METHODS, stream=Terminal())
    work_through(stages, clock, stages.refresh)
    stages.say("a line of its own", stages._stream)
    stages.finish()
    stages.close()
    written = stages._stream.getvalue()
    shares = [int(share) for share in re.findall(r"(\d+)%\|", written)]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert "a: training" in written
    assert "a line of its own" in written
    assert "05:30 in all" in written


def test_the_bar_moves_while_a_stage_says_nothing():
    stages = Stages("demo", tick_seconds=0.01, stream=Terminal())
    stages.expect("compiling", 100)
    with stages:
        stages.begin("compiling")
        deadline = time.monotonic() + 20
        while "01:39 left" not in stages._stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "01:39 left" in stages._stream.getvalue()
    assert stages._closed.is_set()


def test_what_holds_standard_error_back_does_not_hold_the_bar_back(capfd):
    """As `training.command.quiet` does while TensorFlow is imported."""
    with (
        open(2, "w", closefd=False) as standard_error,
        contextlib.redirect_stderr(standard_error),
        Stages("demo", tick_seconds=None, line_seconds=0.0) as stages,
    ):
        stages.expect("starting", 10)
        stages.begin("starting")
        capfd.readouterr()
        with tempfile.TemporaryFile() as held:
            before = os.dup(2)
            os.dup2(held.fileno(), 2)
            stages.refresh()
            os.dup2(before, 2)
            os.close(before)
            assert held.tell() == 0
        assert "left: starting" in capfd.readouterr().err


def test_an_error_leaves_the_bar_where_it_is(clock):
    stages = make(clock, ("train", 30, ""), stream=Terminal())

    def fail():
        with stages:
            stages.begin("train")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert "100%" not in stages._stream.getvalue()
