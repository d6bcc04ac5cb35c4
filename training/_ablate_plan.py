"""What an ablation costs: tokens, FLOPs, and the hours that are left."""

import dataclasses
import json
import pathlib

from keras_tupe import SIZES
from keras_tupe.trainer import step_flops
from training._pretrain_log import LOG, read_log
from training._pretrain_report import duration
from training._tables import table

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
        guess: seconds of a run, as long as none is finished.
    """

    def __init__(self, guess):
        self._guess = guess
        self._seconds = []

    @property
    def is_measured(self):
        """Whether a run is finished."""
        return bool(self._seconds)

    def add(self, seconds):
        """Says how long a whole run took, its tasks included."""
        self._seconds.append(seconds)

    def seconds(self, count):
        """Returns the seconds that `count` runs will take."""
        return count * (sum(self._seconds) / len(self._seconds) if self._seconds else self._guess)


def guessed_seconds(cost, peak, is_gpu):
    """Returns how long a run may take on a device that none was finished on, in seconds."""
    return cost.flops / (peak * (GPU_UTILISATION if is_gpu else CPU_UTILISATION))


def recorded_seconds(folder):
    """Returns the seconds that a finished run and its tasks took, from what they wrote."""
    folder = pathlib.Path(folder)
    seconds = (read_log(folder / LOG)["seconds"] or [0.0])[-1]
    for path in folder.glob("*/results.json"):
        seconds += float(json.loads(path.read_text(encoding="utf-8")).get("seconds", 0.0))
    return seconds


def plan_table(cost, num_variants, num_seeds, num_finished, time_left, peak, has_tasks):
    """Returns what is about to be done, as a table.

    Args:
        cost: the `Cost` of a run.
        num_variants, num_seeds: their product is the number of runs.
        num_finished: how many of them are there already.
        time_left: a `TimeLeft`.
        peak: FLOP/s of a device.
        has_tasks: whether the models are tested too.
    """
    runs = num_variants * num_seeds
    todo = runs - num_finished
    basis = (
        "as long as the finished ones took"
        if time_left.is_measured
        else f"a guess, of the device's {peak / 1e12:.3g} TFLOP/s in matrix products"
    )
    methods = f"{num_variants} method{'s' * (num_variants != 1)}"
    seeds = f"{num_seeds} seed{'s' * (num_seeds != 1)}"
    rows = [
        ["runs", f"{runs} ({methods}, {seeds}), {todo} to do"],
        ["steps of a run", f"{cost.steps:,}"],
        ["tokens of a run", f"{cost.tokens:,} ({cost.epochs:.3g} epochs of the rows)"],
        ["FLOPs of a run", f"{cost.flops:.3g}"],
        ["FLOPs to do", f"{cost.flops * todo:.3g}"],
        ["time", f"about {duration(time_left.seconds(todo))} ({basis})"],
        ["time of tasks", "known when the first run is tested" if has_tasks else "no tasks"],
    ]
    return table(["what", "how much"], rows)
