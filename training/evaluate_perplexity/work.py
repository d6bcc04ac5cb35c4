"""The measurement of a command line, and its report."""

import math
import pathlib

from keras_tupe._commit import commit
from keras_tupe.data import write_json
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_picture
from training.command.tables import table
from training.evaluate_perplexity.run import evaluate
from training.machine.kind import machine_kind

RESULTS = "results.json"
PICTURE = "positions.png"


def measure(settings, command):
    """Measures what `settings` ask for, writes the folder, and returns the report.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if the preset, the rows or the folder cannot be used.
    """
    record = {"command": command, "commit": commit(), "machine": machine_kind()}
    out = pathlib.Path(settings.out)
    with FolderLock(out, "evaluate_perplexity"):
        results = {**record, **evaluate(settings)}
        write_json(out / RESULTS, results)
        replaced_picture(out / PICTURE, lambda path: _draw(path, results))
    return report(results)


def report(results):
    """Returns what is printed at the end: a table of positions, and what it is of.

    Args:
        results: the content of `results.json`.
    """
    rows = [
        [f"{one['first']:,} to {one['last']:,}", f"{one['tokens']:,}", *_loss(one["loss"])]
        for one in results["bins"]
    ]
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in results["numbers"].items())
    read = results["positions"]
    cut = read < results["row_tokens"] - 1
    lines = [
        table(["tokens before", "tokens", "loss", "perplexity"], rows),
        "",
        f"{results['tokens']:,} tokens in {results['seconds']:,.0f} s: loss {results['loss']:.4f} "
        f"nats, {numbers}.",
    ]
    if cut:
        lines.append(
            f"The method has {read:,} positions: the first {read:,} tokens of each row were read."
        )
    return "\n".join(lines)


def _loss(loss):
    return ["-", "-"] if loss is None else [f"{loss:.4f}", f"{math.exp(min(loss, 700)):.4g}"]


def _draw(path, results):
    from training.evaluate_perplexity.picture import draw_positions

    draw_positions(path, {results["position"]: [results]}, results["trained_length"])
