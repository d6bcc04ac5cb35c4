"""The bar of a run: its speed is that of training alone, and what is not known is not shown."""

import io
import re

import pytest

from training.pretrain import progress as progress_module
from training.pretrain.progress import Progress


class Clock:
    """Seconds that a test moves on."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def every_line(monkeypatch):
    monkeypatch.setattr(progress_module, "LINE_SECONDS", 0)


def make(clock, **settings):
    settings = {
        "total_steps": 1000,
        "tokens_per_step": 4096,
        "flops_per_step": 3e9,
        "peak_flops": 1e10,
        "stream": io.StringIO(),
        **settings,
    }
    return Progress(clock=clock, **settings)


def run(progress, clock, steps, seconds_per_step):
    for step in steps:
        clock.now += seconds_per_step
        progress.update(step, loss=step / 8)


def lines(progress):
    return progress._stream.getvalue().splitlines()


def test_speed_is_that_of_training_alone(clock):
    progress = make(clock)
    clock.now += 50  # compiling
    run(progress, clock, [1], 50)
    assert progress.tokens_per_second is None
    assert progress.flop_utilisation is None
    run(progress, clock, range(2, 11), 0.5)
    with progress.paused():
        clock.now += 77
    run(progress, clock, range(11, 21), 0.5)
    assert progress.steps_per_second == pytest.approx(2.0)
    assert progress.tokens_per_second == pytest.approx(8192.0)
    assert progress.flop_utilisation == pytest.approx(0.6)
    assert progress.seconds == pytest.approx(50 + 50 + 19 * 0.5 + 77)


def test_a_pause_before_the_first_step_is_forgotten(clock):
    progress = make(clock)
    with progress.paused():
        clock.now += 20
    run(progress, clock, range(1, 4), 0.5)
    assert progress.steps_per_second == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(range(1, 101), 1.0), (range(101, 401), 0.25)], 4.0),  # that of the last minute or so
        ([(range(1, 6), 100.0)], 0.01),
        ([(range(410, 600, 10), 5.0)], 2.0),  # several steps at once
    ],
)
def test_speed_is_recent_and_that_of_any_steps(parts, expected, clock):
    progress = make(clock, start_step=400 if parts[0][0].start > 400 else 0)
    for steps, seconds in parts:
        run(progress, clock, steps, seconds)
    assert progress.steps_per_second == pytest.approx(expected)


def test_the_time_left_counts_pauses_as_they_were(clock, every_line):
    progress = make(clock)
    run(progress, clock, [0], 3.0)
    for step in range(1, 101):
        run(progress, clock, [step], 1.0)
        with progress.paused():
            clock.now += 1.0
    progress.update(101)
    minutes, seconds = map(int, re.search(r"(\d+):(\d+) left$", lines(progress)[-1]).groups())
    assert abs(60 * minutes + seconds - (1000 - 101) * 200 / 101) <= 1


def test_without_a_terminal_there_is_a_line_now_and_then(clock):
    progress = make(clock)
    run(progress, clock, range(1, 1001), 1.0)
    found = [re.match(r"step ([\d,]+) of 1,000", line)[1] for line in lines(progress)]
    assert [int(step.replace(",", "")) for step in found] == [*range(60, 1000, 60), 1000]
    assert lines(progress)[0] == (
        "step 60 of 1,000 (6%): loss 7.500, 4,096 tokens/s, 30% of peak FLOP/s, 15:40 left"
    )


def test_what_is_not_known_is_not_shown(clock, every_line):
    progress = make(clock, peak_flops=None)
    progress.update(1)
    clock.now += 2.0
    progress.update(2)
    assert progress.flop_utilisation is None
    assert lines(progress) == [
        "step 1 of 1,000 (0%): ",
        "step 2 of 1,000 (0%): 2,048 tokens/s, 33:16 left",
    ]
    progress = make(clock, peak_flops=3e9 * 0.9)  # a share above the peak
    run(progress, clock, [1, 2], 1.0)
    assert progress.flop_utilisation is None
    assert ", ? of peak FLOP/s, " in lines(progress)[-1]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_terminal_there_is_a_bar_below_the_lines(clock):
    with make(clock, stream=Terminal(), total_steps=10, start_step=5) as progress:
        run(progress, clock, [6, 7], 1.0)
        progress.say("validation: loss 3.210")
        run(progress, clock, [8, 9, 10], 1.0)
    printed = progress._stream.getvalue()
    assert "validation: loss 3.210\n" in printed
    last = printed.rstrip("\n").split("\r")[-1]
    assert "100%|" in last
    assert "| 10/10 steps, loss 1.250, 4,096 tokens/s, 30% of peak FLOP/s, 00:00 left" in last
