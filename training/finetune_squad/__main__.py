"""Fine-tunes a preset on SQuAD v1.1 and scores its answers by the official rules.

    python -m training.finetune_squad runs/tupe_r/preset --train train-v1.1.json \\
        --dev dev-v1.1.json --out runs/tupe_r/squad
    python -m training.finetune_squad PRESET --train T --dev D --length 640 --seeds 3 --out longer

The defaults: rows of 512 tokens, as Huang et al. 2020 have them; 3 epochs at 3e-5 in batches of 32,
which they say of GLUE only; the rest as in BERT's code. The report says what differs. A preset for
shorter rows is made longer first, see --extend.

Every seed is a folder, seed-K, that is complete or not there: settings, log, scores,
`predictions.json` (id -> answer, as the official scorer reads it) and `nbest.json`. The same
command goes on where it was stopped. At the end: `results.json`, `results.md` and `squad.png`, with
scores by where the answer stands and by how long the passage is.

A model as small as a laptop trains wants a higher rate (3e-4).
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pathlib
import sys

from keras_tupe.trainer import NonFiniteError
from training.command.grid import Grid
from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.finetune.engine import FineTuner
from training.finetune_squad.data import FILES, read_questions, windows_of
from training.finetune_squad.report import changes, report, write
from training.finetune_squad.results import random_spans, score
from training.finetune_squad.run import Runs, read_predictions
from training.finetune_squad.settings import Settings
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
        ValueError: if the preset, the files or the folder cannot be used.
        NonFiniteError: if training diverges.
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
        done = Runs(settings, tuner, encoder, data, windows).run(grid)
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
            "seeds": list(range(settings.seeds)),
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


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    with sentences("finetune_squad", "The same command goes on from the last complete run."):
        try:
            text = finetune(settings, command_of("finetune_squad", arguments))
        except NonFiniteError as error:
            raise ValueError(
                f"The loss or its gradient is not finite at step {error.step}. Lower "
                f"--learning-rate. Received: learning_rate={settings.learning_rate}"
            ) from None
    print(text)
    print(names_of(settings.out, "results.json", "results.md", "squad.png"))


if __name__ == "__main__":
    main()
