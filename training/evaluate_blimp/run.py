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
from training.evaluate_blimp.scorer import (
    LogLikelihood,
    OwnTokenLogLikelihood,
    PseudoLogLikelihood,
)
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
        model, _ = load_preset(settings.preset, settings.precision)
    scorer = _scorer(settings, model, encoder)
    known = {
        "preset": preset_digest(settings.preset, settings.position_file),
        "score": _score_name(settings, encoder),
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


def _score_name(settings, encoder):
    """Returns what the results call the score: that of the kind of model, or the chosen one."""
    if encoder.is_causal:
        return "sentence"
    return "own tokens" if encoder.is_discriminator else settings.score


def _scorer(settings, model, encoder):
    one_score = encoder.is_causal or encoder.is_discriminator
    if one_score and settings.score == "word":
        how = (
            "a causal one predicts each token from those before it"
            if encoder.is_causal
            else "a discriminator of replaced tokens judges the sentence as it is"
        )
        raise ValueError(
            f"--score is for masked language models: {how}, so that nothing is masked. Leave it "
            f"out. Received: score='word', preset={settings.preset!r}"
        )
    if encoder.is_causal:
        return LogLikelihood(model, encoder.before, settings.batch_tokens)
    frame = (encoder.before, encoder.after)
    if encoder.is_discriminator:
        return OwnTokenLogLikelihood(model, *frame, batch_tokens=settings.batch_tokens)
    return PseudoLogLikelihood(
        model,
        encoder.mask_id,
        *frame,
        word_starts=encoder.word_starts if settings.score == "word" else None,
        batch_tokens=settings.batch_tokens,
    )


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
