"""The quickstart's plan: what it does and why, how long its stages take, and `--minutes`."""

import dataclasses
import math
import pathlib

from training.quickstart.recipe import (
    CURVE_BATCHES,
    STEPS,
    TASK_BATCH_SIZE,
    TASK_STEPS,
    TEST_PAIRS,
    VOCABULARY_SIZE,
    curve_points,
)

STARTING, READING, VOCABULARY = "starting", "reading the text", "training the vocabulary"
TOKENIZING, PAIRS = "cutting the text into rows", "making the word-order task"
MEASURING, PUBLISHING = "measuring this machine", "exporting the best"
CHECK = "the check in another process"
MIN_STEPS = 20  # of pre-training, fewer say nothing
_SAFETY = 0.94  # of the time that is left is planned with: other processes come and go
_ROOM = 1.1  # the minutes named in a refusal are enough for another, slower moment

# Seconds on two idle CPU cores, of the default corpus and the smallest encoder. A plan begins with
# them, times the slowness of the machine, and is corrected by what is measured.
_SECONDS = {STARTING: 12.0, READING: 11.5, VOCABULARY: 2.0, TOKENIZING: 3.5, PAIRS: 4.5}
_SECONDS_OF_THE_END = {PUBLISHING: 22.0, CHECK: 10.0}
_CORPUS_BYTES = 7.5e6  # of the default corpus, whose stages these seconds are of
_PLAIN_READING = 0.1  # of reading the docstrings, for the same number of bytes of plain text


@dataclasses.dataclass(frozen=True)
class Rates:
    """Seconds of the parts of a method, whichever it is.

    Attributes:
        compiling: making the model and its first step of pre-training.
        step: a step of pre-training.
        batch: a batch of held-out rows.
        testing: what the first held-out batch takes more than that.
        task_compiling: the first step of the word-order task, and of its test.
        task_step: a step of the task.
    """

    compiling: float = 12.0
    step: float = 0.030
    batch: float = 0.013
    testing: float = 1.5
    task_compiling: float = 7.0
    task_step: float = 0.056

    def times(self, factor):
        """Returns the rates of a machine that takes `factor` times as long."""
        return Rates(*(factor * value for value in dataclasses.astuple(self)))

    @classmethod
    def measured(cls, compiling, step, batch, testing):
        """Returns the rates of a machine that one method was measured on; the task follows."""
        known = cls()
        return cls(
            compiling,
            step,
            batch,
            testing,
            known.task_compiling * compiling / known.compiling,
            known.task_step * step / known.step,
        )


@dataclasses.dataclass(frozen=True)
class Work:
    """What all methods of a run do.

    Attributes:
        steps: of pre-training.
        task_steps: of the word-order task.
        held_out_batches: of the last validation.
    """

    steps: int = STEPS
    task_steps: int = TASK_STEPS
    held_out_batches: int = 207

    def stages(self, name, rates):
        """Returns the name, the seconds and the kind of each stage of a method."""
        curve = curve_points(self.steps) * min(CURVE_BATCHES, self.held_out_batches)
        training = self.steps * rates.step + curve * rates.batch + rates.testing
        tests = 2 * TEST_PAIRS / TASK_BATCH_SIZE * rates.batch
        return [
            (f"{name}: compiling", rates.compiling, "compiling"),
            (f"{name}: pre-training", training, "pre-training"),
            (f"{name}: validation", self.held_out_batches * rates.batch, "validation"),
            (f"{name}: compiling the word-order task", rates.task_compiling, "task"),
            (f"{name}: fine-tuning", self.task_steps * rates.task_step + tests, "fine-tuning"),
        ]

    def seconds(self, rates, factors):
        """Returns the seconds of all methods.

        Args:
            rates: `Rates` of one of them.
            factors: the time of a step of each, by that of the one that was measured.
        """
        return sum(
            seconds
            for factor in factors
            for _, seconds, _ in self.stages("", _slowed(rates, factor))
        )


def _slowed(rates, factor):
    return dataclasses.replace(rates, step=factor * rates.step, task_step=factor * rates.task_step)


def proportional(steps, held_out_batches=Work.held_out_batches):
    """Returns the `Work` of so many steps; the task keeps its proportion to them."""
    return Work(steps, max(1, round(TASK_STEPS * steps / STEPS)), held_out_batches)


def work_within(seconds, rates, factors, held_out_batches):
    """Returns the `Work` with the most steps, but at least `MIN_STEPS`, that takes so long.

    Args:
        seconds: that all methods may take together.
        rates, factors: as for `Work.seconds`.
        held_out_batches: of the last validation.
    """
    low, high = MIN_STEPS, MIN_STEPS + 1
    while proportional(high, held_out_batches).seconds(rates, factors) <= seconds:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = proportional(middle, held_out_batches).seconds(rates, factors) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return proportional(low, held_out_batches)


def factors_of(names):
    """Returns the time of a step of each method by that of the first; of files it is not known."""
    from training.machine.cost import slower  # Keras starts in seconds

    times = [slower(name, 0) for name in names]
    return [found / times[0] for found in times]


def data_seconds(corpus):
    """Returns the seconds of the stages of the data on two idle cores, name -> seconds.

    Args:
        corpus: file or folder, or `None` for the docstrings.
    """
    if corpus is None:
        return _SECONDS
    path = pathlib.Path(corpus)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    share = sum(file.stat().st_size for file in files) / _CORPUS_BYTES
    seconds = {name: share * value for name, value in _SECONDS.items()}
    return {**seconds, STARTING: _SECONDS[STARTING], READING: _PLAIN_READING * seconds[READING]}


def expect_data(stages, corpus, slowness):
    """Adds the stages until the rows are there to a plan, a `Stages`."""
    for name, seconds in data_seconds(corpus).items():
        stages.expect(name, slowness * seconds)


def expect_all(stages, settings, slowness):
    """Adds all stages of a run to a plan, a `Stages`.

    Args:
        stages: a `Stages`.
        settings: a `Settings` without problems.
        slowness: what `slowness()` returned.
    """
    expect_data(stages, settings.corpus, slowness)
    rates, names = Rates().times(slowness), settings.names()
    work = Work()
    if settings.minutes is not None:
        stages.expect(MEASURING, slowness * _measuring(Rates()))
        fixed = sum(slowness * value for value in _fixed(settings).values())
        seconds = 60 * settings.minutes - stages.taken - fixed
        work = work_within(seconds, rates, [1.0] * len(names), Work.held_out_batches)
    expect_methods(stages, names, work, rates)


def expect_methods(stages, names, work, rates, factors=None, measured=False):
    """Adds the stages of all methods and of the end to a plan, or corrects them."""
    for name, factor in zip(names, factors or [1.0] * len(names), strict=True):
        for stage, seconds, kind in work.stages(name, _slowed(rates, factor)):
            stages.expect(stage, seconds, kind, measured)
    slow = rates.compiling / Rates.compiling
    for name, seconds in _SECONDS_OF_THE_END.items():
        stages.expect(name, slow * seconds, measured=measured)


def end_seconds(rates):
    """Returns what exporting and the check take where compiling is as in `rates`."""
    return sum(_SECONDS_OF_THE_END.values()) * rates.compiling / Rates.compiling


def _measuring(rates):
    return rates.compiling + 30 * rates.step + rates.testing + 8 * rates.batch


def _fixed(settings):
    """Seconds on two idle cores of all but the methods, name -> seconds."""
    return {
        **data_seconds(settings.corpus),
        MEASURING: _measuring(Rates()),
        **_SECONDS_OF_THE_END,
    }


def too_short(settings, slowness):
    """Returns a sentence if `--minutes` cannot hold what takes its time in any case, else `None`.

    Args:
        settings: a `Settings` without problems.
        slowness: what `slowness()` returned.
    """
    if settings.minutes is None:
        return None
    names = settings.names()
    seconds = sum(_fixed(settings).values())
    seconds += proportional(MIN_STEPS).seconds(Rates(), [1.0] * len(names))
    if 60 * settings.minutes >= slowness * seconds:
        return None
    least = math.ceil(10 * _ROOM * slowness * seconds / 60) / 10
    count = f"{len(names)} method{'s' * (len(names) != 1)}"
    return (
        f"--minutes must cover what is needed for {count} whatever the number of steps: reading, "
        "compiling, validating, exporting and its check; on this machine, as busy as it is now, "
        f"expected at least {least:g} minutes. Received: {settings.minutes:g}"
    )


def in_words(settings):
    """Returns what a run is about to do, and why, in five lines."""
    names = settings.names()
    corpus = settings.corpus or "docstrings of the installed packages"
    steps = f"{STEPS:,} steps" if settings.minutes is None else "as many steps as the time allows"
    count = "1 encoder" if len(names) == 1 else f"{len(names)} encoders"
    return "\n".join(
        [
            f"1. text: {corpus}; a tenth of the documents is held out to test on",
            f"2. vocabulary: {VOCABULARY_SIZE:,} word pieces, to cut the text into rows of tokens",
            f"3. {count}, {', '.join(names)}: same rows, masks and {steps}; only positions differ",
            "4. word order: each learns to find exchanged words, which a bag of words cannot show",
            f"5. the best is exported to {settings.out}, loaded by another process, and questioned",
        ]
    )


def plan_rest(stages, minutes, rates, names, held_out_batches):
    """Chooses the steps so that the whole command takes so many minutes, and plans the rest.

    Args:
        stages: a `Stages`, of a command that has its rows and has measured `rates`.
        minutes: of the whole command.
        rates: `Rates` of the first method.
        names: list of the methods.
        held_out_batches: of the last validation.

    Returns:
        The `Work` of each method.
    """
    factors = factors_of(names)
    seconds = _SAFETY * (60 * minutes - stages.taken) - end_seconds(rates)
    work = work_within(seconds, rates, factors, held_out_batches)
    expect_methods(stages, names, work, rates, factors, measured=True)
    return work
