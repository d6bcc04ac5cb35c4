"""Fine-tunes a preset on GLUE by a paper's protocol, over a grid of learning rates and seeds.

    python -m training.finetune_glue runs/tupe_r/preset --data glue --out runs/tupe_r/glue
    python -m training.finetune_glue PRESET --data glue --tasks cola rte --seeds 3 --epochs 3 \\
        --learning-rates 1e-4 3e-4 --out small

Protocols: `tupe` (Ke et al. 2021: four rates, five seeds, the median of the seeds, then the best
rate; Matthews for CoLA, Pearson for STS-B, accuracy) and `huang` (Huang et al. 2020: 3 epochs at
3e-5; F1 for QQP and MRPC). What is changed in them is said in the table.

Every run is a folder, TASK/lr-RATE/seed-K, that is complete or not there: settings, log, scores
and predictions of the dev set. The same command goes on where it was stopped. At the end:
`results.json`, `results.md`, `grid.png`, and with --submission the files for GLUE's server, for
which the median run of the best rate is trained once more (no weights are kept).

A model as small as a laptop trains wants higher rates than the papers' (1e-4 to 1e-3).
"""

import dataclasses
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pathlib
import sys

from training.command.grid import Grid
from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.finetune.engine import FineTuner
from training.finetune_glue.data import read_tasks
from training.finetune_glue.report import report
from training.finetune_glue.results import column_results, constants, facts_of_rows, write
from training.finetune_glue.run import Job, Runs
from training.finetune_glue.settings import Settings
from training.finetune_glue.submission import FOLDER, chosen_runs, collect
from training.machine.kind import machine_kind
from training.presets.encoder import Encoder


def finetune(settings, command):
    """Does, or goes on with, the grid of `settings`.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Returns:
        The report, Markdown.

    Raises:
        ValueError: if the preset, the data or the folder cannot be used.
    """
    plan = settings.plan()
    rows = read_tasks(settings, plan.tasks)
    for line in [line for found in rows.values() for line in found.skipped]:
        print(f"finetune_glue: left out: {line}", file=sys.stderr)
    tuner = FineTuner.of(settings)
    encoder = Encoder(settings.preset, settings.dropout, settings.position_file)
    length = settings.length or min(plan.length, encoder.limit or plan.length)
    runs = Runs(settings, plan, tuner, encoder, rows, length)
    out = pathlib.Path(settings.out)
    with Grid(out, "finetune_glue") as grid:
        jobs = [
            Job(task, rate, seed)
            for task in plan.tasks
            for rate in plan.learning_rates
            for seed in plan.seeds
        ]
        done = dict(zip(jobs, runs.run(grid, jobs), strict=True))
        results = column_results(plan, done)
        facts = {
            "command": command,
            "commit": grid.commits(job.folder for job in jobs),
            "machine": machine_kind(),
            "protocol": settings.protocol,
            "changes": plan.changes(settings, length),
            "preset": settings.preset,
            "position": encoder.position,
            "seeds": list(plan.seeds),
            "length": length,
            "random_labels": settings.random_labels,
            "seconds": sum(metrics["seconds"] for metrics in done.values()),
            "metrics": plan.metrics,
            "rows": facts_of_rows(rows, done),
            "constants": constants(rows, plan),
        }
        text = report(results, facts)
        write(out, results, facts, text)  # also if the runs for the server come to nothing
        if settings.submission:
            seconds, note = _submit(runs, grid, out, results, done)
            facts["seconds"] += seconds
            text = report(results, facts) + note
            write(out, results, facts, text)
    return text


def _submit(runs, grid, out, results, done):
    """Trains the chosen runs again, collects their files; returns seconds, and what to say."""
    chosen = chosen_runs(results)
    jobs = [Job(*key, tested=columns) for key, columns in chosen.items()]
    again = runs.run(grid, jobs)
    names = collect(out, {job.folder: job.tested for job in jobs})
    text = (
        f"\nFor GLUE's server: {', '.join(names)}, in {FOLDER}/. It takes them in one zip file "
        "with WNLI.tsv and AX.tsv, which are not made here.\n"
    )
    for job, metrics in zip(jobs, again, strict=True):
        if metrics["columns"] != done[dataclasses.replace(job, tested=())]["columns"]:
            text += f"\n{job.folder}: trained again it scores otherwise: {metrics['columns']}.\n"
    return sum(metrics["seconds"] for metrics in again), text


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    with sentences("finetune_glue", "The same command goes on from the last complete run."):
        text = finetune(settings, command_of("finetune_glue", arguments))
    print(text)
    print(names_of(settings.out, "results.json", "results.md", "grid.png"))


if __name__ == "__main__":
    main()
