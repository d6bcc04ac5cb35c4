"""The evaluation of a command line, done or gone on with, and its report."""

import pathlib

from keras_tupe.data import write_json
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_picture
from training.evaluate_blimp.run import evaluate
from training.evaluate_blimp.summary import tables
from training.machine.kind import machine_kind

RESULTS = "results.json"
PICTURE = "blimp.png"


def score(settings, command):
    """Scores the pairs of `settings`, writes the folder, and returns the report.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if the preset, the files or the folder cannot be used.
    """
    record = {"command": command, "machine": machine_kind()}
    out = pathlib.Path(settings.out)
    with FolderLock(out, "evaluate_blimp"):
        results = {**record, **evaluate(settings)}
        write_json(out / RESULTS, results)
        replaced_picture(out / PICTURE, lambda path: _draw(path, results))
    return report(results)


def report(results):
    """Returns what is printed at the end: tables, and what they are made of.

    Args:
        results: the content of `results.json`.
    """
    tokens, skipped = results["tokens"], results["skipped"]
    lines = [
        tables(results),
        "",
        f"{tokens:,} tokens predicted in {results['seconds']:,.0f} s; the vocabulary does not know "
        f"{results['unknown_tokens'] / tokens:.2%} of them.",
    ]
    if skipped["count"]:
        lines.append(f"Left out: {skipped['count']:,}. The first: {skipped['first'][0]}")
    return "\n".join(lines)


def _draw(path, results):
    from training.evaluate_blimp.picture import draw_phenomena

    draw_phenomena(path, {results["position"]: results})
