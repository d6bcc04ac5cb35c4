"""The runs of a command line, done or gone on with, and their report."""

import pathlib

from training.command.grid import Grid, converged
from training.finetune.engine import FineTuner
from training.finetune_seq2seq.data import read_all, tokens_of
from training.finetune_seq2seq.model import start_of
from training.finetune_seq2seq.report import means, report, write
from training.finetune_seq2seq.run import PREDICTIONS, Runs
from training.machine.devices import rows_per_part
from training.machine.kind import machine_kind


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
    pairs = read_all(settings)
    machine = FineTuner.of(settings).machine
    rows_per_part(settings.batch_size, machine, settings.micro_batches)
    start = start_of(settings, pairs["train"])
    tokens = _tokens(settings, start, pairs)
    out = pathlib.Path(settings.out)
    runs = Runs(settings, machine, start, pairs, tokens)
    with Grid(out, "finetune_seq2seq") as grid:
        done, diverged = converged(runs.run(grid), settings.learning_rate)
        metrics = list(done.values())
        results = {
            "command": command,
            "commit": grid.commits(done),
            "machine": machine_kind(),
            "preset": settings.preset,
            "position": start.position,
            "vocabulary_size": start.preprocessor.tokenizer.vocabulary_size(),
            "parameters": metrics[0]["parameters"],
            "settings": settings.identity(),
            "steps": runs.plan.steps,
            "warmup_steps": runs.plan.warmup_steps,
            "seeds": [int(name.removeprefix("seed-")) for name in done],
            "diverged": diverged,
            "seconds": sum(found["seconds"] for found in metrics),
            "train_seconds": [found["train_seconds"] for found in metrics],
            "pairs": {
                name: {"used": len(pairs[name]), "cut": tokens[name].num_cut} for name in pairs
            },
            **{
                name: means([found[name] for found in metrics])
                for name in PREDICTIONS
                if name in pairs
            },
        }
        text = report(results)
        write(out, results, text)
    return text


def _tokens(settings, start, pairs):
    """Returns the `Tokens` of all files; what is wrong with them is told at once."""
    found, problems = {}, []
    for name, content in pairs.items():
        try:
            found[name] = tokens_of(content, start.preprocessor, settings.cut_long)
        except ValueError as error:
            problems += [f"--{name}: {line}" for line in str(error).splitlines()]
    if problems:
        raise ValueError("\n".join(problems))
    return found
