"""Picture of the scores by position of the answer and by length of the passage."""

from matplotlib.figure import Figure

from training.command.pictures import save
from training.finetune_squad.results import group_name

_MEASURES = (("f1", "F1", "C0", -0.1), ("exact_match", "exact match", "C1", 0.1))


def draw_squad(path, results):
    """Draws F1 and exact match of groups of questions, with intervals.

    Args:
        path: PNG file to write.
        results: dictionary of which `score` made the parts.
    """
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    count = len(results["f1"]["values"])
    runs = "" if count == 1 else f", mean of {count} seeds"
    figure.suptitle(f"Answers of {results['position']}{runs}; 95 % intervals over questions")
    axes = figure.subplots(1, 2, sharey=True)
    for panel, key, text in (
        (axes[0], "by_answer_position", "position of the answer in the passage (first token)"),
        (axes[1], "by_passage_length", "length of the passage (tokens)"),
    ):
        groups = results[key]
        for measure, label, color, shift in _MEASURES:
            entries = [group[measure] for group in groups]
            values = [entry["mean"] for entry in entries]
            ends = [[_or(e[end], e["mean"]) for e in entries] for end in ("low", "high")]
            reach = [[abs(a - b) for a, b in zip(values, end, strict=True)] for end in ends]
            panel.errorbar(
                [number + shift for number in range(len(groups))],
                values,
                yerr=reach,
                fmt="o-",
                color=color,
                linewidth=1,
                markersize=4,
                capsize=3,
                label=f"{label}: {results[measure]['mean']:.1f} in all",
            )
            panel.axhline(results[measure]["mean"], color=color, linestyle=":", linewidth=1)
        chance = results["random_spans"]["f1"]
        panel.axhline(
            chance, color="gray", linestyle="--", label=f"F1 of random spans: {chance:.1f}"
        )
        labels = [f"{group_name(group)}\nn={group['questions']:,}" for group in groups]
        panel.set_xticks(range(len(groups)), labels, fontsize=8)
        panel.set_xlabel(text)
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("percent")
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    save(figure, path)


def _or(value, other):
    return other if value is None else value
