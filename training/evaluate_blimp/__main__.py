"""Asks a masked language model which sentence of each minimal pair of BLiMP is grammatical.

    python -m training.evaluate_blimp runs/tupe_r/preset --data blimp --out results/blimp

Scores both sentences of a pair by their pseudo-log-likelihood: each token is masked in turn and
predicted. The pair is right if the good sentence is the likelier one; a tie is wrong, and a blind
choice gives 50 %. `--data` holds BLiMP's files (67 paradigms of 1,000 pairs), or some of them. A
`tiny` model takes 7 minutes of one core for all of them. BLiMP has seven pairs of twice the same
sentence, so nobody gets more than 66,993 right.

The folder gets `results.json` (shares from 0 to 1, with 95 % intervals), `blimp.png`, and in
`paradigms/` the scores of every pair. The same command goes on where it was stopped.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pathlib

from keras_tupe.data import write_json
from training.command.folder_lock import FolderLock
from training.command.report_files import names_of, replaced_picture
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.evaluate_blimp.run import evaluate
from training.evaluate_blimp.settings import Settings
from training.evaluate_blimp.summary import tables
from training.machine.kind import machine_kind

RESULTS = "results.json"
PICTURE = "blimp.png"


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


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    record = {
        "command": command_of("evaluate_blimp", arguments),
        "machine": machine_kind(),
    }
    out = pathlib.Path(settings.out)
    with (
        sentences("evaluate_blimp", "The same command goes on where it was."),
        FolderLock(out, "evaluate_blimp"),
    ):
        results = {**record, **evaluate(settings)}
        write_json(out / RESULTS, results)
        replaced_picture(out / PICTURE, lambda path: _draw(path, results))
    print(report(results))
    print("\n" + names_of(out, RESULTS, PICTURE))


def _draw(path, results):
    from training.evaluate_blimp.picture import draw_phenomena

    draw_phenomena(path, {results["position"]: results})


if __name__ == "__main__":
    main()
