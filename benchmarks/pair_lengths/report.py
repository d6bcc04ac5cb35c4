"""The page and the picture of a run of `benchmarks.pair_lengths`."""

from matplotlib import colormaps
from matplotlib.figure import Figure

from benchmarks.harness.report import cores_of, made_by
from training.command.report import save, table
from training.study.report import comparison, comparison_header, note_on_comparisons, spread

_MEASURES = {"exact_match": "exact match", "beginning": "words before the first wrong one"}


def markdown(record, comparisons):
    """Returns the page of a run.

    Args:
        record: what `TASK.json` holds.
        comparisons: dictionary of file -> method -> `Summary` of the exact match.
    """
    settings, methods = record["settings"], record["methods"]
    lines = [
        [
            name,
            f"{method['parameters']:,}",
            *(spread(comparisons[part][name], ".1f") for part in comparisons),
            *comparison(comparisons["test"][name], "+.1f"),
        ]
        for name, method in methods.items()
    ]
    header = ["method", "parameters", "exact match, lengths of training", "longer ones"]
    header += comparison_header("longer ones", settings["baseline"])
    groups = next(iter(methods.values()))
    lengths = [(part, group) for part in ("valid", "test") for group in groups[part]["by_length"]]
    tables = "\n\n".join(
        f"{text.capitalize()}, in percent, by words of the target:\n\n"
        + table(
            ["method", *(_words(group) for _, group in lengths)],
            [
                [
                    name,
                    *(
                        f"{group[measure]['mean']:.1f}"
                        for part in ("valid", "test")
                        for group in method[part]["by_length"]
                    ),
                ]
                for name, method in methods.items()
            ],
        )
        for measure, text in _MEASURES.items()
    )
    seconds = [value for method in methods.values() for value in method["train_seconds"]]
    return (
        f"# Longer targets than any of training: {settings['task']}\n\n"
        f"{made_by(record)}, {cores_of(record)}.\n\n"
        f"{record['text']}. Size {settings['size']}, pre-LN, {settings['seeds']} seeds, "
        f"{settings['steps']:,} steps of {settings['batch_size']} pairs, greedy; training took "
        f"{min(seconds):.0f} to {max(seconds):.0f} s a run. Exact match in percent, with half of "
        "the 95 % interval of the mean over seeds; differences of the same seeds.\n\n"
        f"{table(header, lines)}\n\n{tables}\n\n"
        + "\n".join(note_on_comparisons(len(methods) - 1, "method"))
        + "\n"
    )


def draw(path, record):
    """Draws both scores by the length of the target, a line per method; grey is longer."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, (measure, text) in zip(panels, _MEASURES.items(), strict=True):
        for number, (name, method) in enumerate(record["methods"].items()):
            groups = [*method["valid"]["by_length"], *method["test"]["by_length"]]
            words = [group["words"] for group in groups]
            values = [group[measure]["values"] for group in groups]
            color = colormaps["tab10"](number % 10)
            axes.plot(
                words, [sum(x) / len(x) for x in values], "o-", ms=3.5, label=name, color=color
            )
            axes.fill_between(
                words, [min(x) for x in values], [max(x) for x in values], color=color, alpha=0.13
            )
        ends = (
            method["valid"]["by_length"][-1]["longest"],
            method["test"]["by_length"][0]["shortest"],
        )
        axes.axvspan(sum(ends) / 2, axes.get_xlim()[1], color="gray", alpha=0.12, lw=0)
        axes.margins(x=0)
        axes.set_ylim(-3, 103)
        axes.set_xlabel("words of the target (grey: longer than any of training)")
        axes.set_ylabel(f"{text} (percent)")
        axes.grid(alpha=0.3)
    words = "mean of seeds, band: lowest to highest"
    panels[0].legend(title=words, fontsize=8, title_fontsize=8, loc="upper right")
    figure.suptitle(record["text"])
    save(figure, path)


def _words(group):
    ends = group["shortest"], group["longest"]
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
