"""The export of a model of pairs of texts: what is in it, and the example that it is checked by."""

import pathlib

import numpy as np

from keras_tupe.export import export_seq2seq
from keras_tupe.models import BeamSearch
from training.export.check import EXAMPLE

_TEXTS = ("a", "the 1", "b a c")  # each vocabulary has tokens for them, the unknown one at least


def write_pairs(folder, model, settings):
    """Writes `text/` of a model of pairs, and the scores that it is to answer.

    Args:
        folder: `pathlib.Path` of the export.
        model: a `TupeSeq2SeqLM` with its preprocessor.
        settings: a `Settings` of `training.export` without problems.

    Returns:
        Tokens of a target at most.
    """
    preprocessor = model.preprocessor
    length = settings.length or preprocessor.decoder_sequence_length
    sampler = "greedy"
    if settings.num_beams > 1:
        sampler = BeamSearch(settings.num_beams, settings.length_penalty)
    top_k = min(40, model.backbone.vocabulary_size)
    export_seq2seq(model, preprocessor, folder / "text", length, sampler, top_k)
    _write_example(folder, model, length)
    return length


def _write_example(folder, model, length):
    """Writes texts with the log-probabilities of each other, which `training.query` checks."""
    preprocessor = model.preprocessor
    special = 2 + bool(preprocessor.decoder_starts_with_end)
    room = min(preprocessor.encoder_sequence_length - 2, length - special)
    texts = [text for text in _TEXTS if len(preprocessor.tokenizer([text])[0]) <= room]
    targets = [*texts[1:], *texts[:1]]
    scores = model.score({"encoder_text": texts, "decoder_text": targets}) if texts else {}
    found = scores.get("log_probabilities", np.zeros((0, 1))).sum(axis=1)
    np.savez_compressed(
        pathlib.Path(folder, EXAMPLE),
        text=np.array(texts, str),
        target=np.array(targets, str),
        log_probability=found.astype("float32"),
    )
