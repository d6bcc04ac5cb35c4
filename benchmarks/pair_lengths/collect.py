"""The runs of `benchmarks.pair_lengths`, and what they wrote, pair by pair."""

import itertools
import pathlib
import subprocess

from benchmarks.harness.process import ChildError
from keras_tupe._json_file import read_json_object
from training.command.processes import words_of
from training.study.report import plain
from training.study.results import summarize

# Those of a run besides its method, its seeds and the settings of the benchmark. Token vectors are
# as large as sinusoids: from 0.02 and not scaled, `sinusoidal` wrote nothing right.
_WORDS = (
    *("--normalize-first", "--dropout", "0", "--label-smoothing", "0"),
    *("--scale-embeddings", "--initializer-range", "0.09"),
)
_PREDICTIONS = {"valid": "predictions.tsv", "test": "predictions-test.tsv"}
_BINS = 6  # of the lengths of a file's targets, with about as many pairs each


def collect(settings, task, paths):
    """Trains all methods, one after the other.

    Args:
        settings: a `Settings` without problems.
        task: the `Task`.
        paths: its files by name.

    Returns:
        Tuple: dictionary of method -> what the record holds of it; dictionary of file -> method ->
        `Summary` of the exact match.

    Raises:
        ChildError: if a run fails; it has said why.
    """
    found = {}
    for position in settings.positions:
        out = pathlib.Path(settings.runs) / settings.task / position
        _run(settings, task, paths, position, out)
        found[position] = _method(out)
    comparisons = {}
    for name in _PREDICTIONS:
        exact = {
            position: dict(enumerate(method[name]["exact_match"]))
            for position, method in found.items()
        }
        comparisons[name] = summarize(exact, settings.baseline)
        for position, summary in comparisons[name].items():
            found[position][name]["summary"] = plain(summary.record())
    return found, comparisons


def by_length(lines):
    """Returns scores of pairs of nearly one length, a dictionary for each of a few such groups.

    Exact match is the share of predictions that are their target; the beginning is the share of
    the target's words before the first wrong one. Both in percent.

    Args:
        lines: list of (source, target, prediction).
    """
    rows = sorted(
        (len(target.split()), target == prediction, _beginning(target, prediction))
        for _, target, prediction in lines
    )
    groups, size = [], len(rows) / _BINS
    for _, same in itertools.groupby(rows, key=lambda row: row[0]):
        same = list(same)
        if groups and len(groups[-1]) < size:
            groups[-1] += same
        else:
            groups.append(same)
    return [
        {
            "shortest": group[0][0],
            "longest": group[-1][0],
            "words": sum(row[0] for row in group) / len(group),
            "pairs": len(group),
            "exact_match": 100 * sum(row[1] for row in group) / len(group),
            "beginning": 100 * sum(row[2] for row in group) / len(group),
        }
        for group in groups
    ]


def _run(settings, task, paths, position, out):
    words = words_of("training.finetune", "seq2seq", "--position", position)
    words += [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    words += ["--length", str(task.max_source_length)]
    words += ["--target-length", str(task.max_target_length)]
    words += ["--size", settings.size, "--steps", str(settings.steps), "--out", str(out)]
    words += ["--batch-size", str(settings.batch_size), "--seeds", str(settings.seeds)]
    words += ["--learning-rate", str(settings.learning_rate), *_WORDS]
    words += ["--valid-every", str(max(settings.steps // 4, 1))]
    print(f"{position}: {settings.seeds} runs", flush=True)
    code = subprocess.run(words, stdout=subprocess.DEVNULL).returncode
    if code:
        raise ChildError(f"The runs of {position} ended with {code}. The same command goes on.")


def _method(out):
    """Returns the numbers of a method's runs."""
    results = read_json_object(out / "study.json")
    folders = [out / f"seed-{seed}" for seed in results["seeds"]]
    return {
        "parameters": results["parameters"],
        "commit": results["commit"],
        "train_seconds": results["train_seconds"],
        **{
            name: _scores([folder / file for folder in folders])
            for name, file in _PREDICTIONS.items()
        },
    }


def _scores(files):
    """Returns the exact match of all seeds, and by length the means over them."""
    seeds = [by_length(_lines(file)) for file in files]
    exact = [
        sum(group["exact_match"] * group["pairs"] for group in groups)
        / sum(group["pairs"] for group in groups)
        for groups in seeds
    ]
    means = [
        {
            **{key: same[0][key] for key in ("shortest", "longest", "words", "pairs")},
            **{
                key: {
                    "values": [group[key] for group in same],
                    "mean": sum(group[key] for group in same) / len(same),
                }
                for key in ("exact_match", "beginning")
            },
        }
        for same in zip(*seeds, strict=True)
    ]
    return {"exact_match": exact, "by_length": means}


def _lines(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def _beginning(target, prediction):
    right, words = 0, target.split()
    for word, other in zip(words, prediction.split(), strict=False):
        if word != other:
            break
        right += 1
    return right / len(words)
