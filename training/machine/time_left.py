"""What an ablation costs: tokens, FLOPs, and the hours that are left."""

import dataclasses
import pathlib

from keras_tupe import SIZES
from keras_tupe._json_file import read_json_object
from keras_tupe.trainer import step_flops
from training.command.tables import table
from training.pretrain.log import LOG, read_log
from training.pretrain.report import duration

# Share of a device's peak in matrix products that training reached where we measured it: small
# encoders on two CPU cores 48 % to 91 %; on a GPU small ones reach less than large ones.
CPU_UTILISATION, GPU_UTILISATION = 0.5, 0.3


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one run costs.

    Attributes:
        steps: optimizer steps.
        tokens: tokens of all steps.
        flops: operations of all steps, see `keras_tupe.trainer.step_flops`.
        epochs: how often it sees the training rows.
    """

    steps: int
    tokens: int
    flops: float
    epochs: float


def run_cost(settings, rows):
    """Returns the `Cost` of a run.

    Args:
        settings: a `Settings` of `training.pretrain`.
        rows: the `PreparedRows` to train on.
    """
    size = SIZES[settings.size]
    masking = rows.masking(
        rate=settings.mask_rate,
        whole_word=settings.whole_word,
        mask_special=settings.mask_special,
    )
    flops = step_flops(
        num_layers=size.num_layers,
        hidden_dim=size.hidden_dim,
        intermediate_dim=size.intermediate_dim,
        vocabulary_size=rows.vocabulary.size,
        batch_size=settings.batch_size,
        length=rows.length,
        num_slots=masking.num_slots(rows.length),
    )
    seen = settings.steps * settings.batch_size
    return Cost(settings.steps, seen * rows.length, settings.steps * flops, seen / len(rows))


class TimeLeft:
    """How long the runs to come will take: as long as those that are finished, on the mean.

    Args:
        guess: seconds of a training, as long as none is finished.
    """

    def __init__(self, guess):
        self._guess = guess
        self._trained, self._tested = [], []

    @property
    def is_measured(self):
        """Whether a training is finished."""
        return bool(self._trained)

    def add_training(self, seconds):
        """Says how long a whole training took."""
        self._trained.append(seconds)

    def add_tests(self, seconds):
        """Says how long all tests of a model took."""
        self._tested.append(seconds)

    def seconds(self, num_trainings, num_tests):
        """Returns the seconds that so many trainings, and tests of so many models, will take.

        Tests count as nothing until the first are finished.
        """
        training = _mean(self._trained) if self._trained else self._guess
        return num_trainings * training + num_tests * (_mean(self._tested) if self._tested else 0.0)


def _mean(values):
    return sum(values) / len(values)


def guessed_seconds(cost, peak, is_gpu):
    """Returns how long a run may take on a device that none was finished on, in seconds."""
    return cost.flops / (peak * (GPU_UTILISATION if is_gpu else CPU_UTILISATION))


def recorded_seconds(folder):
    """Returns the seconds that a finished run took, and those of its tests, as they wrote."""
    folder = pathlib.Path(folder)
    training = (read_log(folder / LOG)["seconds"] or [0.0])[-1]
    return training, sum(map(_seconds, folder.glob("*/results.json")))


def _seconds(path):
    """Returns the seconds that results tell, 0 if they tell none; others say what is wrong."""
    try:
        return float(read_json_object(path)["seconds"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0.0


@dataclasses.dataclass(frozen=True)
class Work:
    """How much an ablation asks for, and how much of it is to be done.

    Attributes:
        num_variants, num_seeds: their product is the number of runs.
        num_trainings: runs that are to be trained.
        num_tests: runs whose models are to be tested; `None` if there are no tests.
    """

    num_variants: int
    num_seeds: int
    num_trainings: int
    num_tests: int | None = None


def plan_table(cost, work, time_left, peak):
    """Returns what is about to be done, as a table.

    Args:
        cost: the `Cost` of a run.
        work: a `Work`.
        time_left: a `TimeLeft`.
        peak: FLOP/s of a device.
    """
    basis = (
        "as long as the finished ones took"
        if time_left.is_measured
        else f"a guess, of the device's {peak / 1e12:.3g} TFLOP/s in matrix products"
    )
    methods = f"{work.num_variants} method{'s' * (work.num_variants != 1)}"
    seeds = f"{work.num_seeds} seed{'s' * (work.num_seeds != 1)}"
    runs = f"{work.num_variants * work.num_seeds} ({methods}, {seeds})"
    time = f"about {duration(time_left.seconds(work.num_trainings, 0))} ({basis})"
    rows = [
        ["runs", f"{runs}, {work.num_trainings} to train"],
        ["steps of a run", f"{cost.steps:,}"],
        ["tokens of a run", f"{cost.tokens:,} ({cost.epochs:.3g} epochs of the rows)"],
        ["FLOPs of a run", f"{cost.flops:.3g}"],
        ["FLOPs to do", f"{cost.flops * work.num_trainings:.3g}"],
        ["time of training", time if work.num_trainings else "none"],
        ["time of tests", _tests(work.num_tests, time_left)],
    ]
    return table(["what", "how much"], rows)


def _tests(count, time_left):
    if count is None:
        return "no tests"
    seconds = time_left.seconds(0, count)
    time = f"about {duration(seconds)}" if seconds or not count else "known after the first"
    return f"{time}, {count} model{'s' * (count != 1)} to test"
