"""Summary of the scores of minimal pairs."""

import numpy as np

from keras_tupe.metrics import wilson_interval
from training.command.tables import table

EXTREMES = 5  # paradigms at either end
_LENGTHS = {
    "good_longer": lambda good, bad: good > bad,
    "equal": lambda good, bad: good == bad,
    "bad_longer": lambda good, bad: good < bad,
}


def pair_counts(good, bad, good_lengths, bad_lengths):
    """Counts the pairs that a model gets right.

    A pair is right if the good sentence has the higher score; a tie is wrong, since a model that
    cannot tell two sentences apart has not chosen the good one.

    Args:
        good, bad: scores, arrays `(pairs,)`.
        good_lengths, bad_lengths: tokens of the sentences, arrays `(pairs,)`.

    Returns:
        Dictionary: `all` and each of `good_longer`, `equal`, `bad_longer`, which compare the
        numbers of tokens -> {`right`, `pairs`, `ties`}.
    """
    good, bad = np.asarray(good), np.asarray(bad)
    good_lengths, bad_lengths = np.asarray(good_lengths), np.asarray(bad_lengths)
    masks = {"all": np.ones(len(good), bool)}
    masks |= {name: test(good_lengths, bad_lengths) for name, test in _LENGTHS.items()}
    return {
        name: {
            "right": int(np.sum(good[mask] > bad[mask])),
            "pairs": int(mask.sum()),
            "ties": int(np.sum(good[mask] == bad[mask])),
        }
        for name, mask in masks.items()
    }


def summary(cells):
    """Puts the counts of paradigms together.

    The intervals are Wilson's, at 95 %: what other pairs of the same paradigms would give. Other
    paradigms would differ by more.

    Args:
        cells: dictionary of paradigm -> {`field`, `phenomenon`, `counts` (of `pair_counts`)}.

    Returns:
        Dictionary with `overall`; `lengths`, `fields`, `phenomena` and `paradigms`, which are
        dictionaries by name. Each entry is {`accuracy`, `low`, `high`, all in [0, 1], `pairs`,
        `ties`}; a paradigm also has `field` and `phenomenon`. All pairs count the same.
    """

    def group(key):
        names = sorted({cell[key] for cell in cells.values()})
        return {
            name: _entry([c["counts"]["all"] for c in cells.values() if c[key] == name])
            for name in names
        }

    lengths = {name: [cell["counts"][name] for cell in cells.values()] for name in _LENGTHS}
    return {
        "overall": _entry([cell["counts"]["all"] for cell in cells.values()]),
        "lengths": {
            name: _entry(counts)
            for name, counts in lengths.items()
            if any(count["pairs"] for count in counts)
        },
        "fields": group("field"),
        "phenomena": group("phenomenon"),
        "paradigms": {
            uid: _entry([cell["counts"]["all"]])
            | {"field": cell["field"], "phenomenon": cell["phenomenon"]}
            for uid, cell in sorted(cells.items())
        },
    }


def tables(results):
    """Returns the Markdown tables of a `summary`: fields and phenomena, then extreme paradigms."""
    sections = [
        ("all", {"all pairs": results["overall"]}),
        ("field", results["fields"]),
        ("phenomenon", results["phenomena"]),
        ("tokens", {_spaced(name): entry for name, entry in results["lengths"].items()}),
    ]
    rows = [[kind, name, *_cells(entry)] for kind, part in sections for name, entry in part.items()]
    header = ["by", "", "pairs", "accuracy", "95 % interval", "ties"]
    found = [table(header, rows)]
    ranked = sorted(results["paradigms"].items(), key=lambda item: item[1]["accuracy"])
    for title, part in _ends(ranked):
        rows = [[uid, entry["phenomenon"], *_cells(entry)] for uid, entry in part]
        found.append(table([title, "phenomenon", *header[2:]], rows))
    return "\n\n".join(found)


def _ends(ranked):
    """Returns titles and paradigms of the tables of extremes, of which none is in two."""
    if len(ranked) <= 2 * EXTREMES:
        return [("paradigm, hardest first", ranked)]
    return [
        ("hardest paradigms", ranked[:EXTREMES]),
        ("easiest paradigms", ranked[: -EXTREMES - 1 : -1]),
    ]


def _entry(counts):
    right, pairs, ties = (sum(c[name] for c in counts) for name in ("right", "pairs", "ties"))
    low, high = wilson_interval(right, pairs)
    return {
        "accuracy": right / pairs,
        "low": float(low),
        "high": float(high),
        "pairs": pairs,
        "ties": ties,
    }


def _cells(entry):
    return [
        f"{entry['pairs']:,}",
        f"{entry['accuracy']:.1%}",
        f"{100 * entry['low']:.1f} to {100 * entry['high']:.1f}",
        f"{entry['ties']:,}",
    ]


def _spaced(name):
    return name.replace("_", " ")
