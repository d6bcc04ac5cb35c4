"""The runs of a command line, done or gone on with, and their report."""

import pathlib
import sys

from training.command.grid import Grid, converged
from training.finetune.engine import FineTuner
from training.finetune_squad.data import FILES, read_questions, windows_of
from training.finetune_squad.report import changes, report, write
from training.finetune_squad.results import random_spans, score
from training.finetune_squad.run import Runs, read_predictions
from training.machine.kind import machine_kind
from training.presets.encoder import Encoder


def finetune(settings, command):
    """Does, or goes on with, the runs of `settings`.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Returns:
        The report, Markdown.

    Raises:
        ValueError: if the preset, the files or the folder cannot be used, or all runs diverge.
    """
    data = read_questions(settings)
    for line in [line for name in FILES for line in data[name].skipped]:
        print(f"finetune_squad: left out: {line}", file=sys.stderr)
    tuner = FineTuner.of(settings)
    encoder = Encoder(settings.preset, settings.dropout, settings.position_file)
    windows = {
        name: windows_of(data[name].questions, encoder.tokenizer, settings) for name in FILES
    }
    out = pathlib.Path(settings.out)
    with Grid(out, "finetune_squad") as grid:
        found = Runs(settings, tuner, encoder, data, windows).run(grid)
        done, diverged = converged(found, settings.learning_rate)
        answers = [read_predictions(out / name) for name in done]
        results = {
            "command": command,
            "commit": grid.commits(done),
            "machine": machine_kind(),
            "preset": settings.preset,
            "position": encoder.position,
            "length": settings.length,
            "settings": settings.identity(),
            "changes": changes(settings, {name: len(data[name].questions) for name in FILES}),
            "extension": next(iter(done.values()))["extension"],
            "seeds": [int(name.removeprefix("seed-")) for name in done],
            "diverged": diverged,
            "seconds": sum(metrics["seconds"] for metrics in done.values()),
            "questions": {name: _counts(data[name], windows[name]) for name in FILES},
            **score(windows["dev"], answers),
            "random_spans": random_spans(windows["dev"], settings.max_answer_length),
        }
        text = report(results)
        write(out, results, text)
    return text


def _counts(data, windows):
    return {
        "used": len(data.questions),
        "in_file": data.total,
        "left_out": len(data.skipped),
        "windows": len(windows.token_ids),
        "no_window": len(windows.unlabelled_ids),
        "inside_a_token": len(windows.inexact_ids),
    }
