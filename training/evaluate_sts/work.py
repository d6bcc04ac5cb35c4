"""The measurement of a command line, and its report."""

import csv
import pathlib

from keras_tupe._commit import commit
from keras_tupe.data import write_json
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file, replaced_picture
from training.command.tables import table
from training.evaluate_sts.run import MODEL, WORDS, evaluate
from training.machine.kind import machine_kind

RESULTS = "results.json"
PAIRS = "pairs.csv"
PICTURE = "sts.png"


def measure(settings, command):
    """Measures what `settings` ask for, writes the folder, and returns the report.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if the preset, the data or the folder cannot be used.
    """
    record = {"command": command, "commit": commit(), "machine": machine_kind()}
    out = pathlib.Path(settings.out)
    with FolderLock(out, "evaluate_sts"):
        measured = evaluate(settings)
        results = {**record, **measured.results}
        replaced_file(out / PAIRS, lambda path: _write_pairs(path, measured))
        write_json(out / RESULTS, results)
        replaced_picture(out / PICTURE, lambda path: _draw(path, measured))
    return report(results)


def report(results):
    """Returns what is printed at the end: a table, and what it is of.

    Args:
        results: the content of `results.json`.
    """
    names = {MODEL: f"{results['position']}, {results['pooling']}", WORDS: "mean word vectors"}
    rows = [
        [names[name], *(f"{100 * one[x]:.1f}" for x in ("spearman", "low", "high", "pearson"))]
        for name, one in results["scores"].items()
    ]
    rows.append(["difference", *(f"{100 * x:+.1f}" for x in results["difference"].values()), ""])
    lines = [
        table(
            ["vectors", "Spearman x 100", "low", "high", "Pearson x 100"], rows, right=range(1, 5)
        ),
        "",
        f"{results['pairs']:,} pairs of STS-B ({results['split']}) in {results['seconds']:,.0f} s; "
        "95 % intervals by a bootstrap over pairs.",
    ]
    if results["cut"]:
        lines.append(
            f"{results['cut']:,} texts were cut at {results['length']} tokens, in both rows."
        )
    return "\n".join(lines)


def _write_pairs(path, measured):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["score", "cosine", "cosine_of_word_vectors", "first", "second"])
        columns = (measured.labels, measured.cosines[MODEL], measured.cosines[WORDS])
        writer.writerows(zip(*(x.tolist() for x in columns), *measured.texts, strict=True))


def _draw(path, measured):
    from training.evaluate_sts.picture import draw_similarities

    titles = {
        MODEL: f"{measured.results['position']}, {measured.results['pooling']} of hidden states",
        WORDS: "mean word vectors",
    }
    panels = {
        titles[name]: (values, measured.results["scores"][name])
        for name, values in measured.cosines.items()
    }
    draw_similarities(path, measured.labels, panels)
