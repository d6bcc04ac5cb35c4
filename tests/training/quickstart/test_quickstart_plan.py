"""The quickstart's plan: five lines, the time left, and `--minutes` of the whole command."""

import io
import re
import types

import commands
import pytest

from keras_tupe.tokenizers import WordPiece
from training.command.stages import Stages
from training.quickstart import __main__ as quickstart
from training.quickstart import plan, recipe
from training.quickstart.settings import Settings
from training.quickstart.work import next_steps

NAMES = ["none", "absolute", "tupe_r"]


class Clock:
    """Seconds that a test moves on."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def idle(monkeypatch):
    """A machine as fast as the one that the plan's seconds were measured on."""
    monkeypatch.setattr(quickstart, "slowness", lambda: 1.0)


def test_minutes_below_the_fixed_cost_are_refused_at_once_with_the_minutes_that_are_enough(
    idle, tmp_path
):
    ended = commands.run("quickstart", "--minutes", 0.5, "--out", tmp_path / "out")
    assert (ended.code, ended.out) == (2, "")
    pattern = (
        r"quickstart: --minutes must cover .* 3 methods .* expected at least (\S+) minutes\. (.*)\n"
    )
    found = re.fullmatch(pattern, ended.err)
    assert found[2] == "Received: 0.5"
    assert list(tmp_path.iterdir()) == []
    enough = float(found[1])
    assert 2 <= enough <= 4, "--minutes 4 is for everybody with two idle cores"
    assert plan.too_short(Settings(minutes=enough), 1.09) is None  # a little slower next time
    assert "Received: 2.5" in plan.too_short(Settings(minutes=2.5), 1.0)


def test_the_fixed_cost_grows_with_the_methods_and_the_machine_is_counted():
    def least(slowness, **settings):
        sentence = plan.too_short(Settings(minutes=0.01, **settings), slowness)
        return float(re.search(r"at least (\S+) minutes", sentence)[1])

    assert least(1.0, positions="tupe_r") < least(1.0)
    assert least(3.0) == pytest.approx(3 * least(1.0), rel=0.1)
    assert plan.too_short(Settings(), 1000.0) is None  # without --minutes any machine will do


@pytest.mark.parametrize("seconds", [10.0, 200.0, 700.0, 20_000.0])
def test_the_steps_are_the_most_that_fit(seconds):
    rates, factors = plan.Rates(), [1.0, 1.1, 1.3]
    work = plan.work_within(seconds, rates, factors, 100)
    more = plan.proportional(work.steps + 1, 100)
    assert more.seconds(rates, factors) > seconds
    assert work.steps == plan.MIN_STEPS or work.seconds(rates, factors) <= seconds
    assert work.task_steps == max(1, round(work.steps * recipe.TASK_STEPS / recipe.STEPS))


def go_through(stages, clock, names, work, rates, true):
    """Lets the stages of a run take the time that they really take."""
    for name in names:
        for stage, seconds, _ in work.stages(name, rates):
            stages.begin(stage)
            for tick in range(10):
                clock.now += seconds / 10
                if "compiling" not in stage:
                    stages.at((tick + 1) / 10)
    for stage in (plan.PUBLISHING, plan.CHECK):
        stages.begin(stage)
        clock.now += true[stage]


@pytest.mark.parametrize("slow", [0.7, 1.0, 2.5])
@pytest.mark.parametrize("compiling", [0.8, 1.0, 1.5])
def test_minutes_are_those_of_the_whole_command(slow, compiling):
    """However slow the machine is, and however compiling and steps go together on it."""
    minutes = 6.0 * slow * max(compiling, 1.0)
    settings, clock = Settings(minutes=minutes), Clock()
    stages = Stages("quickstart", tick_seconds=None, stream=io.StringIO(), clock=clock)
    plan.expect_all(stages, settings, slow * 1.2)  # the calibration was a little off
    for name, seconds in plan.data_seconds(None).items():
        stages.begin(name)
        clock.now += slow * seconds
    rates = plan.Rates().times(slow)
    rates = plan.Rates(**{**vars(rates), "compiling": compiling * rates.compiling})
    rates = plan.Rates(**{**vars(rates), "task_compiling": compiling * rates.task_compiling})
    stages.begin(plan.MEASURING)
    clock.now += rates.compiling + 30 * rates.step
    known = plan.Rates.measured(rates.compiling, rates.step, rates.batch, rates.testing)
    work = plan.plan_rest(stages, minutes, known, NAMES, 207)
    assert work.steps > plan.MIN_STEPS
    assert stages.taken + stages.left <= 60 * minutes
    true = {plan.PUBLISHING: 22 * slow, plan.CHECK: 10 * slow}
    go_through(stages, clock, NAMES, work, rates, true)
    stages.finish()
    assert 0.75 * 60 * minutes <= clock.now <= 1.15 * 60 * minutes


def test_the_plan_of_the_default_counts_compiling_of_every_method():
    stages = Stages("quickstart", tick_seconds=None, stream=io.StringIO())
    plan.expect_all(stages, Settings(), 1.0)
    assert 5 * 60 <= stages.left <= 8 * 60  # of two idle cores
    one = Stages("quickstart", tick_seconds=None, stream=io.StringIO())
    plan.expect_all(one, Settings(positions="none"), 1.0)
    of_a_method = sum(seconds for _, seconds, _ in plan.Work().stages("", plan.Rates()))
    assert stages.left - one.left == pytest.approx(2 * of_a_method, rel=1e-3)
    steps = recipe.STEPS * plan.Rates.step
    assert of_a_method > plan.Rates.compiling + plan.Rates.task_compiling + steps


def test_it_says_in_five_lines_what_it_is_about_to_do():
    lines = plan.in_words(Settings()).splitlines()
    assert [line[:3] for line in lines] == [f"{number}. " for number in range(1, 6)]
    assert all(len(line) <= 100 for line in lines)
    for word in ("docstrings", "8,000", "none, absolute, tupe_r", "exchanged", "saved_models/"):
        assert word in " ".join(lines)
    mine = plan.in_words(Settings(corpus="my.txt", positions="alibi", minutes=9, out="x"))
    assert "my.txt" in mine
    assert "1 encoder, alibi" in mine
    assert "2,200" not in mine


def test_the_next_steps_fit_the_corpus():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat"]
    data = types.SimpleNamespace(
        tokenizer=WordPiece(pieces),
        task_test=types.SimpleNamespace(texts=["The grey Cat of ours sat on the mat.", "x"]),
    )
    told = next_steps(Settings(corpus="my own.txt", out="o"), data)
    assert "--text 'The grey Cat of ours [MASK] on the mat.'" in told
    assert "prepare --input 'my own.txt'" in told
    told = next_steps(Settings(), data)
    assert "--text 'a [MASK] of integers'" in told
    assert "saved_models/quickstart/preset" in told
