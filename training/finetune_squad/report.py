"""The report of `training.finetune_squad`: tables, `results.json`, picture."""

import dataclasses

from keras_tupe.data import write_json
from training.command.durations import duration
from training.command.grid import told
from training.command.report_files import replaced_picture, replaced_text
from training.command.tables import table
from training.finetune_squad.results import group_name

_MEASURES = ("exact_match", "f1")
_SOURCE = (
    "the defaults (rows of 512 tokens: Huang et al. 2020; rate, epochs, batch: what they have for "
    "GLUE; the rest: BERT's)"
)
OFFICIAL = {"train": 87_599, "dev": 10_570}  # questions of SQuAD v1.1
# What counts besides the length, whose larger values are Huang et al.'s own subject.
_PROTOCOL = (
    "doc_stride",
    "max_question_length",
    "learning_rate",
    "epochs",
    "batch_size",
    "warmup_share",
    "weight_decay",
    "clip_norm",
    "dropout",
    "max_answer_length",
)


def changes(settings, counts):
    """Returns a sentence for each thing that is not as by default, longer rows left out.

    Args:
        settings: a `Settings` of `training.finetune_squad`.
        counts: dictionary: `"train"` and `"dev"` -> number of questions.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    found = [
        f"{name.replace('_', ' ')} {getattr(settings, name)}, not {defaults[name]}"
        for name in _PROTOCOL
        if getattr(settings, name) != defaults[name]
    ]
    if settings.length < defaults["length"]:
        found.append(f"rows of {settings.length} tokens, not {defaults['length']}")
    for name, verb in (("train", "trained on"), ("dev", "scored on")):
        if counts[name] != OFFICIAL[name]:
            found.append(f"{verb} {counts[name]:,} questions, not the official {OFFICIAL[name]:,}")
    return found


def report(results):
    """Returns the Markdown text of `results.json`'s content."""
    values = [results[name]["values"] for name in _MEASURES]
    rows = [
        [f"seed {seed}", f"{exact:.2f}", f"{f1:.2f}"]
        for seed, exact, f1 in zip(results["seeds"], *values, strict=True)
    ]
    if len(rows) > 1:
        rows.append(["mean", *(f"{results[name]['mean']:.2f}" for name in _MEASURES)])
    rows.append(["random spans", *(f"{results['random_spans'][name]:.2f}" for name in _MEASURES)])
    limits = [
        f"{name} {_interval(results[key])}"
        for key, name in zip(_MEASURES, ("EM", "F1"), strict=True)
    ]
    lines = [
        f"Answers of {results['position']}, rows of {results['length']} tokens, by the rules of "
        "SQuAD v1.1",
        table(["run", "EM", "F1"], rows),
        f"95 % over the questions: {', '.join(limits)}. {_counts(results)}",
    ]
    lines += [results["extension"]] if results["extension"] else []
    if results["changes"]:
        lines.append(f"Not as in {_SOURCE}: {'; '.join(results['changes'])}.")
    for key, name in (
        ("by_answer_position", "position of the answer (tokens)"),
        ("by_passage_length", "length of the passage (tokens)"),
    ):
        lines.append(
            table(
                [name, "questions", "EM", "95 %", "F1", "95 %"],
                [
                    [group_name(group), f"{group['questions']:,}", *_cells(group)]
                    for group in results[key]
                ],
            )
        )
    lines += told(results["diverged"])
    lines.append(f"Time of all runs: {duration(results['seconds'])}.")
    return "\n\n".join(lines) + "\n"


def write(out, results, text):
    """Writes `results.json`, `results.md` and `squad.png`, each whole or not at all."""
    write_json(out / "results.json", results)
    replaced_text(out / "results.md", text)

    def draw(path):
        from training.finetune_squad.picture import draw_squad

        draw_squad(path, results)

    replaced_picture(out / "squad.png", draw)


def _counts(results):
    parts = []
    for name, what in (("train", "training"), ("dev", "dev")):
        found = results["questions"][name]
        parts.append(
            f"{found['used']:,} {what} questions in {found['windows']:,} windows (for "
            f"{found['no_window']:,} no window holds the whole answer)"
        )
    return "; ".join(parts) + "."


def _cells(group):
    return [
        cell for key in _MEASURES for cell in (f"{group[key]['mean']:.1f}", _interval(group[key]))
    ]


def _interval(entry):
    return "-" if entry["low"] is None else f"{entry['low']:.1f} to {entry['high']:.1f}"
