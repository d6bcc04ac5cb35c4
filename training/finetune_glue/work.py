"""The grid of a command line, done or gone on with, and its report."""

import dataclasses
import pathlib
import sys

from training.command.grid import Grid
from training.finetune.engine import FineTuner
from training.finetune_glue.data import read_tasks
from training.finetune_glue.report import report
from training.finetune_glue.results import column_results, constants, facts_of_rows, write
from training.finetune_glue.run import Job, Runs
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
    encoder = Encoder(
        settings.preset, settings.dropout, settings.position_file, settings.keep_zeros
    )
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
