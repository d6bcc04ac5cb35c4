"""Which position methods write targets longer than any of training, on both sides of a model.

    python -m benchmarks.pair_lengths --task copy
    python -m benchmarks.pair_lengths --task scan --scan FOLDER --seeds 5

Trains each method on pairs with short targets by `keras-tupe finetune seq2seq`, new models of the
same size, and compares what they write for pairs with longer ones, by length. The runs are kept in
`--runs`, and the same command goes on from there. Writes `TASK.json`, `TASK.md` and `TASK.png` to
`--out`.
"""

import dataclasses
import pathlib

from benchmarks.pair_lengths.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "pair_lengths")
    with sentences("pair_lengths", "The same command goes on with the runs."):
        _main(settings, arguments)


def _main(settings, arguments):
    from benchmarks.harness import provenance, report
    from benchmarks.pair_lengths import pairs
    from benchmarks.pair_lengths.collect import collect
    from benchmarks.pair_lengths.report import draw, markdown
    from training.command.report import replaced_picture

    task = pairs.scan(settings.scan) if settings.task == "scan" else pairs.copy()
    paths = pairs.write(task, pathlib.Path(settings.runs) / settings.task / "pairs")
    methods, comparisons = collect(settings, task, paths)
    facts = dataclasses.asdict(settings)
    record = {
        **provenance.origin("pair_lengths", arguments),
        "settings": {name: facts[name] for name in facts if name not in ("scan", "runs", "out")},
        "versions": provenance.versions(),
        "text": task.text,
        "pairs": {name: len(getattr(task, name)) for name in paths},
        "methods": methods,
    }
    report.write(settings.out, settings.task, record, markdown(record, comparisons))
    picture = pathlib.Path(settings.out) / f"{settings.task}.png"
    replaced_picture(picture, lambda path: draw(path, record))
    print(f"written: {picture}")


if __name__ == "__main__":
    main()
