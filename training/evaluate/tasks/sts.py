"""How well the similarity of texts' vectors agrees with people's: STS-B, Spearman.

    keras-tupe evaluate sts presets/embedder --data glue --out results/sts
    keras-tupe evaluate sts runs/tupe_r/preset --data glue --pooling mean --out results/sts

Both sentences of each pair become vectors, without any training on the task, and Spearman's
correlation of their cosine with the pairs' scores is what is reported. PRESET is an embedder
(`keras-tupe convert` of a sentence-transformers folder), or any other preset with a tokenizer,
whose hidden states are then pooled. Beside it stands a baseline that knows neither order nor
context: the mean of the model's own word vectors, the rows of its token embedding, special tokens
left out. `--data` holds GLUE's STS-B, of which the dev set is used (1,500 pairs).

The folder gets `results.json` (correlations from -1 to 1 with 95 % intervals, by a bootstrap over
pairs, and the difference from the baseline), `pairs.csv` and `sts.png`.
"""

import csv
import dataclasses
import time

import numpy as np

from training.command.report import replaced_file, table
from training.command.settings import COUNT, COUNT_OR_ZERO, setting
from training.evaluate import task

PAIRS = "pairs.csv"
MODEL, WORDS = "model", "word vectors"
_BINS = 10  # parts of the scale from 0 to 5 that the picture has medians of


@dataclasses.dataclass(frozen=True)
class Settings(task.Settings):
    """Settings of STS-B."""

    data: str | None = setting(None, "Folder of GLUE's official files, or of STS-B's.")
    split: str = setting("validation", "Which pairs.", one_of=("validation", "train"))
    pooling: str | None = setting(
        None,
        "How hidden states become a vector. Default: an embedder's own, or mean.",
        one_of=("mean", "cls", "max"),
    )
    length: int | None = setting(
        None,
        "Tokens of a text, special ones included. Default: the preset's.",
        rule=("an integer >= 3", lambda value: value >= 3),
    )
    batch_size: int = setting(32, "Texts that the model gets at once.", rule=COUNT)
    resamples: int = setting(2000, "Draws of pairs for the intervals.", rule=COUNT)
    seed: int = setting(0, "Of the draws.", rule=COUNT_OR_ZERO)
    check_counts: bool = setting(
        True, "Whether another number of pairs than the official one is an error."
    )

    content = "of GLUE's files"


def measure(settings, preset, folder):
    """Measures how well vectors agree with people."""
    from training.presets.folder import preset_digest

    rows = _read(settings)
    embedder = _embedder(settings, preset)
    start = time.monotonic()
    pairs = [embedder.embed(texts, settings.batch_size) for texts in rows.texts]
    seconds = time.monotonic() - start
    words = [mean_word_vectors(embedder, texts) for texts in rows.texts]
    cosines = {MODEL: cosines_of(*pairs), WORDS: cosines_of(*words)}
    columns = (rows.labels, *cosines.values())
    results = {
        "preset": preset,
        "preset_digest": preset_digest(preset, settings.position_file),
        "position": embedder.backbone.position,
        "pooling": embedder.pooling,
        "split": settings.split,
        "length": embedder.preprocessor.sequence_length,
        "pairs": len(rows.labels),
        "cut": _num_cut(embedder.preprocessor, [*rows.texts[0], *rows.texts[1]]),
        "seconds": seconds,
        **scores(rows.labels, cosines, settings.resamples, settings.seed),
    }
    replaced_file(folder / PAIRS, lambda path: _write_pairs(path, columns, rows.texts))
    return task.Measured(results, columns, rows.texts)


def _read(settings):
    from keras_tupe.data import read_glue

    try:
        return read_glue("stsb", settings.data, settings.split, check_counts=settings.check_counts)
    except ValueError as error:
        text = str(error).replace("give check_counts=False", "give --no-check-counts")
        raise ValueError(text.replace("`source` must", "--data must")) from error


def _embedder(settings, preset):
    """Returns a `TupeTextEmbedder` of a preset of any kind."""
    from keras_tupe import TupeTextEmbedder
    from training.presets.load import embedder, load_preset

    model, text = load_preset(preset)
    if text is None:
        raise ValueError(
            "The preset must have a tokenizer, so that it can read sentences. Save the model with "
            f"its preprocessor. Received: {preset!r}"
        )
    backbone = getattr(model, "backbone", model)
    own = model.pooling if isinstance(model, TupeTextEmbedder) else "mean"
    # of any length, as cosines are
    pooling = settings.pooling or own
    return embedder(backbone, text, settings.length, pooling=pooling, normalize=False)


def mean_word_vectors(embedder, texts):
    """Returns the mean of the token embedding's rows of each text, without special tokens."""
    from keras import ops

    vectors = ops.convert_to_numpy(embedder.backbone.token_embedding.embeddings)
    rows = embedder.preprocessor(texts)
    ids, mask = (ops.convert_to_numpy(rows[x]) for x in ("token_ids", "padding_mask"))
    tokenizer = embedder.preprocessor.tokenizer.op
    special = [x for x in (tokenizer.start_id, tokenizer.end_id) if x is not None]
    kept = mask.astype(bool) & ~np.isin(ids, special)
    return np.stack([vectors[row[used]].mean(axis=0) for row, used in zip(ids, kept, strict=True)])


def cosines_of(first, second):
    """Returns the cosine of each pair of vectors, `(pairs,)`; 0 where one is zero."""
    first, second = first.astype("float64"), second.astype("float64")
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.maximum(norms, 1e-300)


def scores(labels, cosines, resamples, seed):
    """Returns the correlations with people's scores, and that of the model less the words'.

    Args:
        labels: array `(pairs,)`.
        cosines: dictionary of `"model"` and `"word vectors"` -> array `(pairs,)`.
        resamples, seed: of `bootstrap_interval`.
    """
    from keras_tupe.metrics import bootstrap_interval, pearson, spearman

    def interval(score, *columns):
        found = bootstrap_interval(score, labels, *columns, resamples=resamples, seed=seed)
        return dict(zip(("spearman", "low", "high"), found, strict=True))

    found = {
        name: {**interval(spearman, values), "pearson": pearson(labels, values)}
        for name, values in cosines.items()
    }
    difference = interval(
        lambda gold, model, words: spearman(gold, model) - spearman(gold, words),
        cosines[MODEL],
        cosines[WORDS],
    )
    return {"scores": found, "difference": difference}


def _num_cut(preprocessor, texts):
    """Returns how many texts were longer than the rows."""
    room = preprocessor.sequence_length - 1 - preprocessor.add_start_token
    lengths = preprocessor.tokenizer.op.tokenize(texts).row_lengths()
    return int((np.asarray(lengths) > room).sum())


def _write_pairs(path, columns, texts):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["score", "cosine", "cosine_of_word_vectors", "first", "second"])
        writer.writerows(zip(*(x.tolist() for x in columns), *texts, strict=True))


def report(results):
    """Returns a table, and what it is of."""
    names = {MODEL: f"{results['position']}, {results['pooling']}", WORDS: "mean word vectors"}
    rows = [
        [names[name], *(f"{100 * one[x]:.1f}" for x in ("spearman", "low", "high", "pearson"))]
        for name, one in results["scores"].items()
    ]
    rows.append(["difference", *(f"{100 * x:+.1f}" for x in results["difference"].values()), ""])
    header = ["vectors", "Spearman x 100", "low", "high", "Pearson x 100"]
    lines = [
        table(header, rows, right=range(1, 5)),
        "",
        f"{results['pairs']:,} pairs of STS-B ({results['split']}) in {results['seconds']:,.0f} s; "
        "95 % intervals by a bootstrap over pairs.",
    ]
    if results["cut"]:
        lines.append(
            f"{results['cut']:,} texts were cut at {results['length']} tokens, in both rows."
        )
    return "\n".join(lines)


def draw(path, found):
    """Draws cosines against scores, with medians: all models, and the words of the first one."""
    from matplotlib.figure import Figure

    from training.command.report import save

    panels = [
        (f"{label}, {one.results['pooling']} of hidden states", MODEL, one)
        for label, one in found.items()
    ]
    panels.append(("mean word vectors", WORDS, next(iter(found.values()))))
    figure = Figure(figsize=(5.2 * len(panels), 4.6), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for number, (axes, (title, kind, one)) in enumerate(zip(all_axes, panels, strict=True)):
        labels, cosines = one.rows[0], one.rows[1 + (kind == WORDS)]
        axes.scatter(labels, cosines, s=6, alpha=0.25, color=f"C{number}", linewidths=0)
        part = np.clip((labels / 5 * _BINS).astype(int), 0, _BINS - 1)
        used = np.unique(part)
        medians = [np.median(cosines[part == number]) for number in used]
        middles = (used + 0.5) * 5 / _BINS
        axes.plot(middles, medians, "o-", color="black", markersize=4, label="median")
        score = one.results["scores"][kind]
        value, low, high = (100 * score[name] for name in ("spearman", "low", "high"))
        axes.set_title(f"{title}\nSpearman x 100: {value:.1f} ({low:.1f} to {high:.1f})")
        axes.set_xlabel("similarity by people (0 to 5)")
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right")
    all_axes[0].set_ylabel("cosine of the two vectors")
    figure.suptitle(f"STS-B: {len(labels):,} pairs of sentences, 95 % intervals")
    save(figure, path)


def _score(labels, cosines, _):
    from keras_tupe.metrics import spearman

    return 100 * spearman(labels, cosines)


TASK = task.Task(
    measure,
    report,
    draw,
    picture="sts.png",
    makes=(PAIRS,),
    score_name="Spearman x 100",
    score=_score,
)
