"""Answers in files, and the comparison of a server's answer with the direct one.

NumPy only, since the server's environment has no Keras of this package.
"""

import collections
import json
import pathlib

import numpy as np

TOLERANCE = 1e-5  # float32, whatever the size of the batch


def write_requests(file, requests):
    """Writes a list of requests, dictionaries of lists."""
    pathlib.Path(file).write_text(json.dumps(requests), encoding="utf-8")


def read_requests(file):
    """Returns the list of requests of a file."""
    return json.loads(pathlib.Path(file).read_text(encoding="utf-8"))


def write_answers(file, answers):
    """Writes answers, a list of dictionaries of arrays with the rows in front."""
    np.savez(file, **{name: np.concatenate([a[name] for a in answers]) for name in answers[0]})


def read_answers(file, row_counts):
    """Returns the list of answers of a file, given the number of rows of each request."""
    ends = np.cumsum(row_counts)[:-1]
    with np.load(file) as arrays:
        parts = {name: np.split(arrays[name], ends) for name in arrays.files}
    return [{name: parts[name][i] for name in parts} for i in range(len(row_counts))]


def error(answer, expected):
    """Returns the largest absolute difference of two answers, infinite if they cannot be compared.

    Args:
        answer: dictionary of arrays; it may have more than is expected.
        expected: dictionary of arrays.
    """
    largest = 0.0
    for name, wanted in expected.items():
        given = answer.get(name)
        if given is None or given.shape != wanted.shape:
            return float("inf")
        difference = np.abs(given.astype("float64") - wanted.astype("float64")).max()
        largest = max(largest, float(difference) if np.isfinite(difference) else float("inf"))
    return largest


def times(seconds, total):
    """Returns the numbers of a row.

    Args:
        seconds: the time of each request.
        total: time of all of them together, in seconds.
    """
    p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
    return {"p50_ms": float(p50), "p99_ms": float(p99), "per_second": len(seconds) / total}


def compare(outcomes, expected):
    """Returns how many outcomes are exceptions, how many are wrong, and by how much.

    Args:
        outcomes: list of (answer, rows of its batch) or exceptions.
        expected: list of answers.
    """
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    errors = [
        error(outcome[0], wanted)
        for outcome, wanted in zip(outcomes, expected, strict=True)
        if not isinstance(outcome, Exception)
    ]
    return {
        "compared": len(outcomes),
        "wrong": sum(size > TOLERANCE for size in errors),
        "failed": len(failures),
        "largest_error": max(filter(np.isfinite, errors), default=None),
        "first_failure": f"{type(failures[0]).__name__}: {failures[0]}" if failures else None,
    }


def batches(outcomes, counts):
    """Returns the batches that were seen, from the rows of the batch that each answer came from.

    Args:
        outcomes: list of (answer, rows of its batch) or exceptions.
        counts: rows of each request.
    """
    seen = collections.Counter()
    for outcome, count in zip(outcomes, counts, strict=True):
        if not isinstance(outcome, Exception):
            seen[outcome[1]] += count
    found = {rows: round(total / rows) for rows, total in sorted(seen.items())}
    number = sum(found.values())
    return {"batches": found, "mean_batch": sum(seen.values()) / number if number else None}
