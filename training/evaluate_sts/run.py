"""Cosines of pairs of texts by a preset, and what they are worth."""

import dataclasses
import time

import keras
import numpy as np

from keras_tupe import TupeTextClassifierPreprocessor, TupeTextEmbedder, positions
from keras_tupe.data import read_glue
from keras_tupe.metrics import bootstrap_interval, pearson, spearman
from training.presets.folder import preset_digest
from training.presets.load import load_preset

MODEL, WORDS = "model", "word vectors"


@dataclasses.dataclass(frozen=True)
class Measured:
    """What a measurement found.

    Attributes:
        results: dictionary, the part of `results.json` that comes out of the pairs.
        texts: the sentences of the pairs, two lists.
        labels: people's scores, from 0 to 5, `(pairs,)`.
        cosines: dictionary of `"model"` and `"word vectors"` -> array `(pairs,)`.
    """

    results: dict
    texts: tuple
    labels: np.ndarray
    cosines: dict


def evaluate(settings):
    """Measures how well vectors agree with people.

    Args:
        settings: a `Settings` without problems.

    Returns:
        A `Measured`.

    Raises:
        ValueError: if preset and data cannot be used.
    """
    rows = _read(settings)
    if settings.position_file is not None:
        positions.load_file(settings.position_file)
    embedder = _embedder(settings)
    start = time.monotonic()
    pairs = [embedder.embed(texts, settings.batch_size) for texts in rows.texts]
    seconds = time.monotonic() - start
    words = [mean_word_vectors(embedder, texts) for texts in rows.texts]
    cosines = {MODEL: cosines_of(*pairs), WORDS: cosines_of(*words)}
    backbone = embedder.backbone
    results = {
        "preset": settings.preset,
        "preset_digest": preset_digest(settings.preset, settings.position_file),
        "position": backbone.position,
        "pooling": embedder.pooling,
        "split": settings.split,
        "length": embedder.preprocessor.sequence_length,
        "pairs": len(rows.labels),
        "cut": _num_cut(embedder.preprocessor, [*rows.texts[0], *rows.texts[1]]),
        "seconds": seconds,
        **scores(rows.labels, cosines, settings.resamples, settings.seed),
    }
    return Measured(results, rows.texts, rows.labels, cosines)


def _read(settings):
    try:
        return read_glue("stsb", settings.data, settings.split, check_counts=settings.check_counts)
    except ValueError as error:
        text = str(error).replace("give check_counts=False", "give --no-check-counts")
        raise ValueError(text.replace("`source` must", "--data must")) from error


def _embedder(settings):
    """Returns a `TupeTextEmbedder` of a preset of any kind."""
    model, text = load_preset(settings.preset)
    if text is None:
        raise ValueError(
            "The preset must have a tokenizer, so that it can read sentences. Save the model with "
            f"its preprocessor. Received: {settings.preset!r}"
        )
    backbone = getattr(model, "backbone", model)
    is_embedder = isinstance(model, TupeTextEmbedder)
    length = settings.length or getattr(text, "sequence_length", None)
    preprocessor = TupeTextClassifierPreprocessor(
        getattr(text, "tokenizer", text),
        sequence_length=length or backbone.max_sequence_length,
        segments=bool(backbone.num_segments),
        add_start_token=getattr(text, "add_start_token", True),
    )
    own = model.pooling if is_embedder else "mean"
    # of any length, as cosines are
    return TupeTextEmbedder(backbone, preprocessor, settings.pooling or own, normalize=False)


def mean_word_vectors(embedder, texts):
    """Returns the mean of the token embedding's rows of each text, `(texts, dim)`.

    Special tokens are left out. It knows neither the order of the tokens nor what is around them.

    Args:
        embedder: a `TupeTextEmbedder` with a preprocessor.
        texts: list of strings.
    """
    table = keras.ops.convert_to_numpy(embedder.backbone.token_embedding.embeddings)
    rows = embedder.preprocessor(texts)
    ids, mask = (keras.ops.convert_to_numpy(rows[x]) for x in ("token_ids", "padding_mask"))
    tokenizer = embedder.preprocessor.tokenizer.op
    special = [x for x in (tokenizer.start_id, tokenizer.end_id) if x is not None]
    kept = mask.astype(bool) & ~np.isin(ids, special)
    return np.stack([table[row[used]].mean(axis=0) for row, used in zip(ids, kept, strict=True)])


def cosines_of(first, second):
    """Returns the cosine of each pair of vectors, `(pairs,)`; 0 where one is zero."""
    first, second = first.astype("float64"), second.astype("float64")
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / np.maximum(norms, 1e-300)


def scores(labels, cosines, resamples, seed):
    """Returns the correlations with people's scores, and how far they are to be trusted.

    Args:
        labels: array `(pairs,)`.
        cosines: dictionary of `"model"` and `"word vectors"` -> array `(pairs,)`.
        resamples, seed: of `bootstrap_interval`.

    Returns:
        Dictionary of `scores`: name -> `spearman` with `low` and `high`, and `pearson`; and
        `difference`: Spearman's of the model less that of the word vectors, with `low`, `high`.
    """
    draws = {"resamples": resamples, "seed": seed}
    found = {}
    for name, values in cosines.items():
        value, low, high = bootstrap_interval(spearman, labels, values, **draws)
        found[name] = {"spearman": value, "low": low, "high": high}
        found[name]["pearson"] = pearson(labels, values)

    def difference(gold, model, words):
        return spearman(gold, model) - spearman(gold, words)

    value, low, high = bootstrap_interval(
        difference, labels, cosines[MODEL], cosines[WORDS], **draws
    )
    return {"scores": found, "difference": {"spearman": value, "low": low, "high": high}}


def _num_cut(preprocessor, texts):
    """Returns how many texts were longer than the rows."""
    room = preprocessor.sequence_length - 1 - preprocessor.add_start_token
    lengths = preprocessor.tokenizer.op.tokenize(texts).row_lengths()
    return int((keras.ops.convert_to_numpy(lengths) > room).sum())
