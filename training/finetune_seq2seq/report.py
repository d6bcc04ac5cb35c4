"""The report of `training.finetune_seq2seq`: a table, `results.json`, curves."""

import pathlib

from keras_tupe.data import write_json
from training.command.durations import duration
from training.command.grid import told
from training.command.log import LOG, VALID, read_log
from training.command.report_files import replaced_text
from training.command.tables import table
from training.finetune_seq2seq.scores import MEASURES
from training.pretrain.report import Run, write_picture

CURVES = "curves.png"


def means(scores):
    """Returns the scores of all seeds, and their means.

    Args:
        scores: list of what `score` returned, one for each seed.
    """
    values = {name: [found[name] for found in scores] for name in MEASURES}
    return {
        "pairs": scores[0]["pairs"],
        **{name: {"values": x, "mean": sum(x) / len(x)} for name, x in values.items()},
        "exact_match_intervals": [found["exact_match_interval"] for found in scores],
        "signatures": scores[0]["signatures"],
    }


def report(results):
    """Returns the Markdown text of `results.json`'s content."""
    files = [name for name in ("valid", "test") if name in results]
    header = ["run", *(f"{name} {text}" for name in files for text in MEASURES.values())]
    rows = [
        [f"seed {seed}", *_cells(results, files, lambda found, n=number: found["values"][n])]
        for number, seed in enumerate(results["seeds"])
    ]
    if len(rows) > 1:
        rows.append(["mean", *_cells(results, files, lambda found: found["mean"])])
    lines = [
        f"Targets written by {results['position']} "
        f"({results['parameters']:,} parameters, {results['steps']:,} steps), in percent",
        table(header, rows),
    ]
    for name in files:
        first = results[name]["exact_match_intervals"][0]
        lines.append(
            f"{results['pairs'][name]['used']:,} {name} pairs; exact match of seed "
            f"{results['seeds'][0]} at 95 % over the pairs: {first[0]:.1f} to {first[1]:.1f}."
        )
    train = results["pairs"]["train"]
    lines.append(f"Trained on {train['used']:,} pairs.{_cut(results['pairs'])}")
    signatures = results[files[0]]["signatures"]
    lines.append(f"sacrebleu: chrF `{signatures['chrf']}`, BLEU `{signatures['bleu']}`.")
    lines += told(results["diverged"])
    lines.append(f"Time of all runs: {duration(results['seconds'])}.")
    return "\n\n".join(lines) + "\n"


def write(out, results, text):
    """Writes `results.json`, `results.md` and `curves.png`, each whole or not at all.

    Args:
        out: the folder, with those of the seeds.
        results: content of `results.json`.
        text: that of `results.md`.
    """
    write_json(out / "results.json", results)
    replaced_text(out / "results.md", text)
    folders = {f"seed {seed}": pathlib.Path(out) / f"seed-{seed}" for seed in results["seeds"]}
    runs = [
        Run(label, read_log(folder / LOG), read_log(folder / VALID), "causal_lm")
        for label, folder in folders.items()
    ]
    write_picture(out / CURVES, runs)


def _cells(results, files, value):
    return [f"{value(results[name][measure]):.2f}" for name in files for measure in MEASURES]


def _cut(pairs):
    parts = [
        f"{number:,} {side}s of --{name}"
        for name, found in pairs.items()
        for side, number in found["cut"].items()
        if number
    ]
    return f" Cut, since longer than their rows: {', '.join(parts)}." if parts else ""
