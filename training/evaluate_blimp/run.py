"""Scores of minimal pairs by a preset, one paradigm after the other."""

import csv
import hashlib
import json
import pathlib
import time

from keras_tupe import positions
from keras_tupe.data import read_blimp
from training.command.grid import Cell, Grid
from training.command.kinds import nearest
from training.evaluate_blimp.scorer import LogLikelihood, PseudoLogLikelihood
from training.evaluate_blimp.summary import pair_counts, summary
from training.evaluate_blimp.texts import Encoder
from training.presets.folder import preset_digest
from training.presets.load import load_preset

_COLUMNS = ("good_score", "bad_score", "good_tokens", "bad_tokens", "good", "bad")
_FIRST = 10  # sentences about what was left out


def choose(paradigms, names):
    """Returns the paradigms of these names, or all if there are no names.

    Raises:
        ValueError: if there is no such paradigm; all such names, with the nearest one, are said.
    """
    known = {paradigm.uid: paradigm for paradigm in paradigms}
    unknown = [name for name in names if name not in known]
    if unknown:
        hints = ", ".join(f"{name!r} (the nearest is {nearest(name, known)!r})" for name in unknown)
        raise ValueError(f"--paradigms must be names of paradigms in --data. Received: {hints}")
    return [paradigm for paradigm in paradigms if not names or paradigm.uid in names]


def evaluate(settings):
    """Scores the paradigms that have no scores yet, and sums up all of them.

    Args:
        settings: a `Settings` without problems.

    Returns:
        Dictionary, the part of `results.json` that comes out of the pairs.

    Raises:
        ValueError: if data, preset or output folder cannot be used.
    """
    skipped = [] if settings.skip_bad else None
    paradigms = choose(read_blimp(settings.data, skipped=skipped), settings.paradigms)
    if settings.position_file is not None:
        positions.load_file(settings.position_file)
    model, text = load_preset(settings.preset)
    encoder = Encoder(model, text, settings.preset)
    chosen = {
        paradigm.uid: encoder.pairs(paradigm, settings.limit, skipped) for paradigm in paradigms
    }
    if settings.precision != "float32":
        model = type(model).from_preset(
            str(pathlib.Path(settings.preset).resolve()),
            preprocessor=None,
            dtype=settings.precision,
        )
    scorer = _scorer(settings, model, encoder)
    known = {
        "preset": preset_digest(settings.preset, settings.position_file),
        "score": "sentence" if encoder.is_causal else settings.score,
        "precision": model.backbone.dtype_policy.name,
    }
    cells = [Cell(uid, {**known, "pairs": _pairs_hash(pairs)}) for uid, pairs in chosen.items()]
    with Grid(pathlib.Path(settings.out) / "paradigms") as grid:
        found = grid.run(
            cells, lambda cell, folder: _score(scorer, chosen[cell.name], folder), _accuracy
        )
        commits = grid.commits(found)
    rows = [ids for pairs in chosen.values() for pair in pairs.ids for ids in pair]
    return {
        "commit": commits,
        "preset": settings.preset,
        "position": model.backbone.position,
        **{name: known[name] for name in ("score", "precision")},
        "seconds": sum(metrics["seconds"] for metrics in found.values()),
        "tokens": sum(map(len, rows)),
        "unknown_tokens": sum(ids.count(encoder.unknown_id) for ids in rows),
        "skipped": {"count": len(skipped or []), "first": (skipped or [])[:_FIRST]},
        **summary(found),
    }


def _scorer(settings, model, encoder):
    if not encoder.is_causal:
        return PseudoLogLikelihood(
            model,
            encoder.mask_id,
            encoder.before,
            encoder.after,
            word_starts=encoder.word_starts if settings.score == "word" else None,
            batch_tokens=settings.batch_tokens,
        )
    if settings.score == "word":
        raise ValueError(
            "--score is for masked language models: a causal one predicts each token from those "
            "before it, so that nothing is masked. Leave it out. Received: score='word', "
            f"preset={settings.preset!r}"
        )
    return LogLikelihood(model, encoder.before, settings.batch_tokens)


def _score(scorer, pairs, folder):
    """Scores the pairs of a paradigm, writes `pairs.csv`, and returns what is counted."""
    start = time.monotonic()
    scores = scorer.scores([ids for pair in pairs.ids for ids in pair]).reshape(-1, 2)
    lengths = [(len(good), len(bad)) for good, bad in pairs.ids]
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        rows = zip(scores.tolist(), lengths, pairs.texts, strict=True)
        writer.writerows([*pair, *tokens, *texts] for pair, tokens, texts in rows)
    return {
        "field": pairs.field,
        "phenomenon": pairs.phenomenon,
        "counts": pair_counts(*scores.T, *zip(*lengths, strict=True)),
        "seconds": time.monotonic() - start,
    }


def _accuracy(metrics):
    counts = metrics["counts"]["all"]
    return f"{counts['right'] / counts['pairs']:.1%}"


def _pairs_hash(pairs):
    return _hash(json.dumps([pairs.field, pairs.phenomenon, pairs.texts]))


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()
