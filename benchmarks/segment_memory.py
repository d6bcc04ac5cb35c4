"""What a memory of earlier segments is worth: two ablations, with and without, seed by seed.

    python -m benchmarks.segment_memory with/memory without/memory --out segment_memory.json

Both are folders of `study ablation --objective causal_lm --long-rows ROWS`, of the same methods,
seeds, rows and segments, one with `--memory-length`, one without. For each method: the losses on
held-out rows, in all and by segment, and what the memory changes, in pairs of equal seeds (95 %
intervals and p of Student's paired t test). `--picture` draws loss against position.
"""

import dataclasses

from training.command.settings import parse, setting
from training.command.shell import sentences
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe._json_file import read_json_object

_PARTS = ("memory", "none")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the benchmark."""

    ablations: tuple = setting(
        (), "Folders of two ablations: with a memory, and without.", positional=True
    )
    out: str | None = setting(None, "A JSON file for the record.")
    picture: str | None = setting(None, "A PNG file for the picture.")

    def problems(self):
        """Returns a sentence if there are not two."""
        if len(self.ablations) == 2:
            return []
        return [
            "ABLATIONS must be two folders of ablations, with a memory and without. "
            f"Received: {len(self.ablations)}"
        ]


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "segment_memory")
    from benchmarks.harness import provenance, report

    with sentences("segment_memory", "Nothing was written."):
        records = [read_json_object(f"{folder}/study.json") for folder in settings.ablations]
        rows = compared(*records)
        record = {
            **provenance.origin("segment_memory", arguments),
            "trained_on": records[0]["machine"],
            "steps": dict(zip(_PARTS, (one["settings"]["steps"] for one in records), strict=True)),
            "rows": rows,
        }
        if settings.picture:
            draw(settings.picture, rows)
        report.print_json(record, settings.out)


def compared(*records):
    """Returns a dictionary for each method.

    Args:
        *records: contents of two `study.json`, with a memory and without.

    Raises:
        ValueError: if methods, seeds or bins of the two differ, or there are no bins.
    """
    methods = [list(record["methods"]) for record in records]
    seeds = [record["seeds"] for record in records]
    lengths = [record["settings"].get("memory_length") for record in records]
    if methods[0] != methods[1] or seeds[0] != seeds[1] or not lengths[0] or lengths[1]:
        raise ValueError(
            "The two ablations must have the same methods and seeds, the first a memory and the "
            f"second none. Received: methods {methods}, seeds {seeds}, memory_length {lengths}"
        )
    return [_method(name, [record["methods"][name] for record in records]) for name in methods[0]]


def _method(name, parts):
    from training.study.report import plain

    runs = [list(part["runs"].values()) for part in parts]
    whole = [[run["scores"]["held-out loss"] for run in part] for part in runs]
    if any(not run.get("by_position") for part in runs for run in part):
        raise ValueError(
            f"Runs must have losses by position, of --long-rows. Received: {name} without"
        )
    bins = [[run["by_position"]["bins"] for run in part] for part in runs]
    segments = [
        {
            **{part: _mean(found, number) for part, found in zip(_PARTS, bins, strict=True)},
            "first": bins[0][0][number]["first"],
            "last": bins[0][0][number]["last"],
            "difference": _difference([_losses(found, number) for found in bins]),
        }
        for number in range(len(bins[0][0]))
    ]
    known = {part: sum(values) / len(values) for part, values in zip(_PARTS, whole, strict=True)}
    return plain({"method": name, **known, "difference": _difference(whole), "segments": segments})


def _losses(bins, number):
    return [one[number]["loss"] for one in bins]


def _mean(bins, number):
    losses = _losses(bins, number)
    return sum(losses) / len(losses)


def _difference(pair):
    from keras_tupe.metrics import paired_difference

    return paired_difference(pair[1], pair[0])


def draw(path, rows):
    """Draws the loss of each segment of a row, with and without a memory.

    Args:
        path: PNG file to write.
        rows: what `compared` returned.
    """
    from matplotlib.figure import Figure

    from training.command.report import save

    figure = Figure(figsize=(4.6 * len(rows), 3.8), layout="constrained")
    for axes, row in zip(
        figure.subplots(1, len(rows), sharey=True, squeeze=False)[0], rows, strict=True
    ):
        numbers = range(1, len(row["segments"]) + 1)
        for part, words in (("none", "without a memory"), ("memory", "with a memory")):
            losses = [segment[part] for segment in row["segments"]]
            axes.plot(numbers, losses, "o-", markersize=4, label=words)
        axes.set_title(row["method"], fontsize=10)
        axes.set_xlabel("segment of a row; the first has nothing to remember")
        axes.set_ylabel("held-out next-token loss (nats)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    main()
