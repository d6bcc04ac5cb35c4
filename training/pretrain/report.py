"""The report of a run of `training.pretrain`: a table, totals and a picture, from its logs."""

import contextlib
import dataclasses
import math
import pathlib

import numpy as np

from keras_tupe import objectives
from keras_tupe._json_file import read_json_object
from training.command.log import LOG, VALID, read_log
from training.command.report import duration, replaced_picture, table

PICTURE = "curves.png"
POINTS = 6  # rows of the table of one run
_SMOOTHED_SHARE = 0.02  # of the training log, behind each point of its curve


@dataclasses.dataclass(frozen=True)
class Run:
    """The logs of a run."""

    label: str  # how the run is called in pictures and tables
    log: dict  # columns of `log.csv`
    valid: dict  # and of `valid.csv`
    objective: str = "masked_lm"
    characters: float | None = None  # mean number of a held-out prediction, if it is known

    @property
    def words(self):
        """The `Objective`, which has the words for what is measured."""
        return objectives.get(self.objective)

    @property
    def accuracies(self):
        """What the accuracies of the outputs are called, by their columns of `valid.csv`."""
        further = list(self.words.outputs.items())[1:]
        named = {f"{name}_accuracy": output.accuracy for name, output in further}
        return {"valid_accuracy": self.words.accuracy, **named}

    def numbers(self):
        """Returns what the objective reports of the last held-out loss, a dictionary."""
        losses = self.valid["valid_loss"]
        if not losses or not self.characters:
            return {}
        return self.words.numbers(losses[-1], self.characters)

    @property
    def tokens_per_step(self):
        """Tokens per step, all replicas together; `None` without a validation."""
        steps, tokens = self.valid["step"], self.valid["tokens"]
        return tokens[-1] / steps[-1] if steps and steps[-1] else None

    @property
    def seconds(self):
        """Seconds of the run, validations and checkpoints included."""
        return self.log["seconds"][-1] if self.log["seconds"] else 0.0

    def typical(self, column):
        """Returns the median of a column of the training log, `None` if nothing is known."""
        known = [value for value in self.log[column] if not np.isnan(value)]
        return float(np.median(known)) if known else None


def load_run(folder, label):
    """Returns the `Run` of a folder, of which the record may be missing; its logs must be there."""
    folder, name, characters = pathlib.Path(folder), "masked_lm", None
    with contextlib.suppress(
        OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError
    ):
        record = read_json_object(folder / "settings.json")
        objectives.get(record["settings"]["objective"])
        name = record["settings"]["objective"]
        facts = record["held_out"]
        found = float(facts["characters"]) / float(facts["predictions"])
        characters = found if math.isfinite(found) else None
    return Run(label, read_log(folder / LOG), read_log(folder / VALID), name, characters)


def write_report(folder, label):
    """Draws `curves.png` of a run, called by its label, and returns its table and totals."""
    run = load_run(folder, label)
    write_picture(pathlib.Path(folder) / PICTURE, [run])
    told = ", ".join(f"{name} {value:.4g}" for name, value in run.numbers().items())
    parts = [_points(run), f"Held-out {told}." if told else "", totals(run)]
    return "\n\n".join(filter(None, parts))


def write_picture(path, runs):
    """Draws runs, see `draw_runs`, to a file that is whole or not there, where matplotlib is."""
    replaced_picture(path, lambda partial: draw_runs(partial, runs))


def totals(run):
    """Returns a sentence of the time and the speed of a run."""
    parts = [f"{duration(run.seconds)} in all"]
    speed, share = run.typical("tokens_per_second"), run.typical("flop_utilisation")
    if speed is not None:
        parts.append(f"{speed:,.0f} tokens/s")
    if share is not None:
        parts.append(f"{share:.0%} of peak FLOP/s")
    if run.log["skipped_steps"] and run.log["skipped_steps"][-1] > 0:
        parts.append(f"{run.log['skipped_steps'][-1]:.0f} steps skipped")
    return ", ".join(parts) + "."


def _points(run):
    """Returns a table of a handful of validations, the last one among them."""
    count = len(run.valid["step"])
    if not count:
        return "There was no validation."
    chosen = sorted({round(index) for index in np.linspace(0, count - 1, min(POINTS, count))})
    forms = {"step": ",.0f", "tokens": ",.0f", "valid_loss": ".3f"}
    forms |= dict.fromkeys(run.accuracies, ".1%")
    rows = [
        [f"{run.valid[name][index]:{form}}" for name, form in forms.items()] for index in chosen
    ]
    return table(["step", "tokens", "held-out loss", *run.accuracies.values()], rows)


def draw_runs(path, runs):
    """Draws held-out loss and accuracy of runs over training tokens, and training loss, faint."""
    from matplotlib.figure import Figure

    from training.command.report import save

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    loss_axes, accuracy_axes = figure.subplots(1, 2)
    in_tokens = all(run.tokens_per_step for run in runs)
    for number, run in enumerate(runs):
        color = f"C{number % 10}"
        scale = run.tokens_per_step / 1e6 if in_tokens else 1
        steps, losses = _smooth(run.log["step"], run.log["loss"])
        loss_axes.plot(steps * scale, losses, color=color, alpha=0.35, linewidth=1)
        x = np.multiply(run.valid["step"], scale)
        style = {"color": color, "linewidth": 2, "markersize": 3}
        style["marker"] = "o" if len(x) <= 50 else None
        for axes, column, form in (
            (loss_axes, "valid_loss", ".3f"),
            (accuracy_axes, "valid_accuracy", ".1%"),
        ):
            values = run.valid[column]
            label = f"{run.label}: {values[-1]:{form}}" if values else None
            axes.plot(x, values, label=label, **style)
    held_out = [loss for run in runs for loss in run.valid["valid_loss"] if np.isfinite(loss)]
    if held_out:  # the first training losses would leave no room for the rest
        low, high = min(held_out), max(held_out)
        room = 0.08 * (high - low) or 0.1
        trained = [loss for run in runs for loss in _smooth([], run.log["loss"])[1]]
        low = min([low, *(loss for loss in trained if np.isfinite(loss))])
        loss_axes.set_ylim(low - room, high + room)
    words = runs[0].words
    loss_axes.set_ylabel(f"{words.predictions.replace(' ', '-')} loss (nats)")
    loss_axes.set_title("held-out loss; faint: training loss, smoothed")
    accuracy_axes.set_ylabel(words.accuracy)
    accuracy_axes.set_title(f"held-out {words.accuracy}")
    accuracy_axes.yaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 6):g}%")
    for axes in (loss_axes, accuracy_axes):
        axes.set_xlabel("tokens seen in training (million)" if in_tokens else "steps of training")
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        if held_out:
            axes.legend(title="last value" if len(runs) > 1 else None)
    save(figure, path)


def _smooth(steps, values):
    """Returns the steps of a log and its running mean, over a window around each of them."""
    values = np.asarray(values, float)
    window = max(1, round(_SMOOTHED_SHARE * len(values)))
    weights = np.ones(window)
    if len(values):
        total = np.convolve(values, weights, "same")
        values = total / np.convolve(np.ones(len(values)), weights, "same")
    return np.asarray(steps, float), values
