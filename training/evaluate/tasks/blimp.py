"""Which sentence of each minimal pair of BLiMP is grammatical, by a language model.

    keras-tupe evaluate blimp runs/tupe_r/preset --data blimp --out results/blimp

Scores both sentences of a pair: by a masked language model's pseudo-log-likelihood, for which each
token is masked in turn and predicted, by a causal one's log-likelihood, or by how likely each token
is the sentence's own to a discriminator of replaced tokens. The pair is right if the good sentence
has the higher score; a tie is wrong, and a blind choice gives 50 %. `--data` holds BLiMP's files
(67 paradigms of 1,000 pairs), or some of them. A `tiny` masked model takes 7 minutes of one core
for all of them. BLiMP has seven pairs of twice the same sentence, so nobody gets more than 66,993
right.

The folder gets `results.json` (shares from 0 to 1, with 95 % intervals), `blimp.png`, and in
`paradigms/` the scores of every pair. The same command goes on where it was stopped.
"""

import csv
import dataclasses
import hashlib
import json
import os
import time

import numpy as np

from training.command.report import table
from training.command.settings import COUNT, nearest, setting
from training.evaluate import task

PARADIGMS = "paradigms"
CHANCE = 0.5
EXTREMES = 5  # paradigms at either end
_COLUMNS = ("good_score", "bad_score", "good_tokens", "bad_tokens", "good", "bad")
_FIRST = 10  # sentences about what was left out
_LENGTHS = {
    "good_longer": lambda good, bad: good > bad,
    "equal": lambda good, bad: good == bad,
    "bad_longer": lambda good, bad: good < bad,
}


@dataclasses.dataclass(frozen=True)
class Settings(task.Settings):
    """Settings of BLiMP."""

    data: str | None = setting(None, "Folder of BLiMP's .jsonl files, or one of them.")
    score: str = setting(
        "token",
        "What a masked language model does not see of what it predicts: each token alone (token), "
        "or with the later pieces of its word (word).",
        one_of=("token", "word"),
    )
    paradigms: tuple = setting((), "Names of the paradigms to score. Default: all in --data.")
    limit: int | None = setting(None, "Pairs of each paradigm, from its first on.", rule=COUNT)
    skip_bad: bool = setting(
        False, "Whether lines and pairs that cannot be used are left out, and counted."
    )
    batch_tokens: int = setting(4096, "Tokens that the model gets at once.", rule=COUNT)
    precision: str = setting(
        "float32", "Precision of the work.", one_of=("float32", "mixed_bfloat16")
    )

    content = "of .jsonl files"
    is_data = staticmethod(os.path.exists)


def measure(settings, preset, folder):
    """Scores the paradigms that have no scores yet, and sums up all of them."""
    from keras_tupe.data import read_blimp
    from training.command.grid import Cell, Grid
    from training.evaluate.sentences import Encoder
    from training.presets.folder import preset_digest
    from training.presets.load import load_preset

    skipped = [] if settings.skip_bad else None
    paradigms = _chosen(read_blimp(settings.data, skipped=skipped), settings.paradigms)
    model, text = load_preset(preset)
    encoder = Encoder(model, text, preset)
    found = {one.uid: encoder.pairs(one, settings.limit, skipped) for one in paradigms}
    pairs = {one.uid: (_names(one), *found[one.uid]) for one in paradigms}
    if settings.precision != "float32":
        model, _ = load_preset(preset, settings.precision)
    scorer = _scorer(settings, preset, model, encoder)
    name = "sentence" if encoder.is_causal else settings.score
    known = {
        "preset": preset_digest(preset, settings.position_file),
        "score": "own tokens" if encoder.is_discriminator else name,
        "precision": model.backbone.dtype_policy.name,
    }
    cells = [Cell(uid, {**known, "pairs": _hash(*one[:2])}) for uid, one in pairs.items()]
    with Grid(folder / PARADIGMS) as grid:
        found = grid.run(
            cells,
            lambda cell, new: _score(scorer, *pairs[cell.name], new),
            lambda metrics: "{right} of {pairs}".format_map(metrics["counts"]["all"]),
        )
        commits = grid.commits(found)
    rows = [row for _, _, ids in pairs.values() for pair in ids for row in pair]
    results = {
        "commit": commits,
        "preset": preset,
        "position": model.backbone.position,
        **{name: known[name] for name in ("score", "precision")},
        "seconds": sum(metrics["seconds"] for metrics in found.values()),
        "tokens": sum(map(len, rows)),
        "unknown_tokens": sum(row.count(encoder.unknown_id) for row in rows),
        "skipped": {"count": len(skipped or []), "first": (skipped or [])[:_FIRST]},
        **summary(found),
    }
    is_right = [_is_right(folder / PARADIGMS / uid / "pairs.csv") for uid in pairs]
    same = {uid: texts for uid, (_, texts, _) in pairs.items()}
    return task.Measured(results, (np.concatenate(is_right),), same)


def _chosen(paradigms, wanted):
    known = {paradigm.uid: paradigm for paradigm in paradigms}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        hints = ", ".join(f"{name!r} (the nearest is {nearest(name, known)!r})" for name in unknown)
        raise ValueError(f"--paradigms must be names of paradigms in --data. Received: {hints}")
    return [paradigm for paradigm in paradigms if not wanted or paradigm.uid in wanted]


def _scorer(settings, preset, model, encoder):
    from training.evaluate import sentences

    if (encoder.is_causal or encoder.is_discriminator) and settings.score == "word":
        how = (
            "a causal one predicts each token from those before it"
            if encoder.is_causal
            else "a discriminator of replaced tokens judges the sentence as it is"
        )
        raise ValueError(
            f"--score is for masked language models: {how}, so that nothing is masked. Leave it "
            f"out. Received: score='word', preset={preset!r}"
        )
    size = settings.batch_tokens
    if encoder.is_causal:
        return sentences.LogLikelihood(model, encoder.before, size)
    frame = (encoder.before, encoder.after)
    if encoder.is_discriminator:
        return sentences.OwnTokenLogLikelihood(model, *frame, size)
    starts = encoder.word_starts if settings.score == "word" else None
    return sentences.PseudoLogLikelihood(model, encoder.mask_id, *frame, starts, size)


def _names(paradigm):
    field = paradigm.field.replace("/", "_")  # one of BLiMP's files spells it otherwise
    return {"field": field, "phenomenon": paradigm.linguistics_term}


def _score(scorer, names, texts, ids, folder):
    """Scores the pairs of a paradigm, writes `pairs.csv`, and returns what is counted."""
    start = time.monotonic()
    scores = scorer.scores([row for pair in ids for row in pair]).reshape(-1, 2)
    lengths = [(len(good), len(bad)) for good, bad in ids]
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        rows = zip(scores.tolist(), lengths, texts, strict=True)
        writer.writerows([value for part in row for value in part] for row in rows)
    return {
        **names,
        "counts": pair_counts(*scores.T, *zip(*lengths, strict=True)),
        "seconds": time.monotonic() - start,
    }


def _is_right(path):
    """Returns which pairs of a file of scores are right, bool."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [(float(row[_COLUMNS[0]]), float(row[_COLUMNS[1]])) for row in csv.DictReader(file)]
    return np.array([good > bad for good, bad in rows])


def _hash(names, texts):
    return hashlib.sha256(json.dumps([*names.values(), texts]).encode()).hexdigest()


def pair_counts(good, bad, good_lengths, bad_lengths):
    """Counts the pairs of which the good sentence has the higher score, of all and by length.

    A tie is wrong: a model that cannot tell two sentences apart has not chosen the good one.

    Args:
        good, bad: scores, `(pairs,)`.
        good_lengths, bad_lengths: tokens of the sentences, `(pairs,)`.

    Returns:
        Dictionary: `all`, `good_longer`, `equal`, `bad_longer` -> {`right`, `pairs`, `ties`}.
    """
    good, bad, *lengths = map(np.asarray, (good, bad, good_lengths, bad_lengths))
    masks = {"all": np.ones(len(good), bool)}
    masks |= {name: test(*lengths) for name, test in _LENGTHS.items()}
    return {
        name: {
            "right": int(np.sum(good[mask] > bad[mask])),
            "pairs": int(mask.sum()),
            "ties": int(np.sum(good[mask] == bad[mask])),
        }
        for name, mask in masks.items()
    }


def summary(cells):
    """Returns the shares of right pairs: overall, by lengths, fields, phenomena and paradigms.

    The intervals are Wilson's, at 95 %: what other pairs of the same paradigms would give. Other
    paradigms would differ by more. All pairs count the same.

    Args:
        cells: dictionary of paradigm -> {`field`, `phenomenon`, `counts` (of `pair_counts`)}.
    """

    def group(key):
        values = sorted({cell[key] for cell in cells.values()})
        return {x: _entry([cell for cell in cells.values() if cell[key] == x]) for x in values}

    every = list(cells.values())
    lengths = [name for name in _LENGTHS if any(x["counts"][name]["pairs"] for x in every)]
    return {
        "overall": _entry(every),
        "lengths": {name: _entry(every, name) for name in lengths},
        "fields": group("field"),
        "phenomena": group("phenomenon"),
        "paradigms": {
            uid: {**_entry([x]), "field": x["field"], "phenomenon": x["phenomenon"]}
            for uid, x in sorted(cells.items())
        },
    }


def _entry(cells, which="all"):
    from keras_tupe.metrics import wilson_interval

    right, pairs, ties = (
        sum(cell["counts"][which][name] for cell in cells) for name in ("right", "pairs", "ties")
    )
    low, high = wilson_interval(right, pairs)
    return {"accuracy": right / pairs, "low": low, "high": high, "pairs": pairs, "ties": ties}


def report(results):
    """Returns tables of fields, phenomena and extreme paradigms, and what they are made of."""
    tokens, skipped = results["tokens"], results["skipped"]
    lines = [
        tables(results),
        "",
        f"{tokens:,} tokens predicted in {results['seconds']:,.0f} s; the vocabulary does not know "
        f"{results['unknown_tokens'] / tokens:.2%} of them.",
    ]
    if skipped["count"]:
        lines.append(f"Left out: {skipped['count']:,}. The first: {skipped['first'][0]}")
    return "\n".join(lines)


def tables(results):
    """Returns the Markdown tables of a `summary`: fields and phenomena, then extreme paradigms."""
    sections = [
        ("all", {"all pairs": results["overall"]}),
        ("field", results["fields"]),
        ("phenomenon", results["phenomena"]),
        ("tokens", {name.replace("_", " "): entry for name, entry in results["lengths"].items()}),
    ]
    rows = [[kind, name, *_cells(entry)] for kind, part in sections for name, entry in part.items()]
    header = ["by", "", "pairs", "accuracy", "95 % interval", "ties"]
    found = [table(header, rows)]
    ranked = sorted(results["paradigms"].items(), key=lambda item: item[1]["accuracy"])
    ends = [("paradigm, hardest first", ranked)]
    if len(ranked) > 2 * EXTREMES:
        ends = [("hardest paradigms", ranked[:EXTREMES])]
        ends.append(("easiest paradigms", ranked[: -EXTREMES - 1 : -1]))
    for title, part in ends:
        rows = [[uid, entry["phenomenon"], *_cells(entry)] for uid, entry in part]
        found.append(table([title, "phenomenon", *header[2:]], rows))
    return "\n\n".join(found)


def _cells(entry):
    return [
        f"{entry['pairs']:,}",
        f"{entry['accuracy']:.1%}",
        f"{100 * entry['low']:.1f} to {100 * entry['high']:.1f}",
        f"{entry['ties']:,}",
    ]


def draw_phenomena(path, runs):
    """Draws the accuracies of runs, label -> `summary`, by phenomenon, the easiest above."""
    from matplotlib.figure import Figure

    from training.command.report import save

    accuracies = {}
    for results in runs.values():
        for name, entry in results["phenomena"].items():
            accuracies.setdefault(name, []).append(entry["accuracy"])
    names = sorted(accuracies, key=lambda name: np.mean(accuracies[name]))
    height = 1.6 + (0.22 + 0.14 * len(runs)) * (len(names) + 1)
    figure = Figure(figsize=(8, height), layout="constrained")
    axes = figure.add_subplot()
    for number, (label, results) in enumerate(runs.items()):
        shift = 0.5 * (0.5 - (number + 0.5) / len(runs))  # the first run above
        found = results["phenomena"]
        entries = {-1: results["overall"]}
        entries |= {row: found[name] for row, name in enumerate(names) if name in found}
        values = [100 * entry["accuracy"] for entry in entries.values()]
        ends = np.array([[100 * e["low"], 100 * e["high"]] for e in entries.values()]).T
        axes.errorbar(
            values,
            [row + shift for row in entries],
            xerr=np.abs(ends - values),
            fmt="o",
            color=f"C{number % 10}",
            markersize=4,
            capsize=2,
            label=f"{label}: {100 * results['overall']['accuracy']:.1f} %",
        )
    axes.axvline(100 * CHANCE, color="gray", linestyle="--", label="a blind choice")
    axes.axhline(-0.5, color="black", linewidth=0.8)
    pairs = next(iter(runs.values()))["overall"]["pairs"]
    labels = [f"all {pairs:,} pairs", *(name.replace("_", " ") for name in names)]
    axes.set_yticks(range(-1, len(names)), labels)
    axes.set_ylim(-1.5, len(names) - 0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("pairs in which the good sentence is more likely (%), with 95 % intervals")
    axes.set_title("BLiMP: minimal pairs by phenomenon")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    save(figure, path)


TASK = task.Task(
    measure,
    report,
    draw=lambda path, found: draw_phenomena(path, {k: one.results for k, one in found.items()}),
    picture="blimp.png",
    makes=(PARADIGMS,),
    score_name="accuracy (%)",
    score=lambda is_right: 100 * is_right.mean(),
    stopped="The same command goes on where it was.",
)
