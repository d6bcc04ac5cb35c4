"""Embedders of sentence-transformers."""

import dataclasses
import os
import pathlib

from keras_tupe.convert._assign import weights_by_path
from keras_tupe.convert.hugging_face.engine import from_hf
from keras_tupe.convert.hugging_face.files import read_json
from keras_tupe.convert.sentence_transformers.modules import read_settings
from keras_tupe.models import (
    TupeCausalLM,
    TupeTextClassifierPreprocessor,
    TupeTextEmbedder,
)


def from_sentence_transformers(folder, dtype=None):
    """Returns an embedder with the weights of a sentence-transformers folder, and a report.

    The folder has a `modules.json`, which says where the encoder is and how its hidden states
    become a vector. The encoder is read by `from_hf`, so that it may be of any kind that this
    reads, but for causal language models. Then:

        Pooling    pooling_mode_mean_tokens, _cls_token or _max_tokens
                   -> pooling "mean", "cls" or "max"
        Normalize  normalize=True if it is there
        max_seq_length (sentence_bert_config.json)
                   -> sequence_length of the preprocessor, special tokens included

    Differences from the source: an empty text is refused; there it has a vector too. Prompts are
    not put before texts; the report names them. A Longformer gets no global tokens, since
    sentence-transformers makes none.

    Args:
        folder: path of a local folder, as `SentenceTransformer.save` writes it. Nothing in it is
            run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Returns:
        `(model, report)`: a `TupeTextEmbedder` and a `Report`. Without a tokenizer that ours
        can be, which the report tells, the model takes ids only.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if there are other modules (a Dense) or poolings, a default prompt, or a
            text is lower-cased for a tokenizer that is not; or as `from_hf`.

    References:
        Reimers, Gurevych. Sentence-BERT. EMNLP 2019. https://arxiv.org/abs/1908.10084
    """
    settings = read_settings(folder)
    kind = read_json(settings.transformer / "config.json").get("model_type")
    model, report = from_hf(
        settings.transformer, dtype=dtype, **({"num_global": 0} if kind == "longformer" else {})
    )
    if isinstance(model, TupeCausalLM):
        raise ValueError(
            "Texts are embedded by encoders, whose tokens see the whole text. "
            f"Received: {os.fspath(pathlib.Path(folder))!r} with model_type={kind!r}"
        )
    preprocessor = _preprocessor(model, settings)
    if settings.lowercase and preprocessor and not preprocessor.tokenizer.lowercase:
        raise ValueError(
            "A text must be read as it is written, or lower-cased by the tokenizer itself. "
            f"Received: {os.fspath(pathlib.Path(folder))!r} with do_lower_case=True for a "
            "tokenizer that keeps upper case"
        )
    embedder = TupeTextEmbedder(model.backbone, preprocessor, settings.pooling, settings.normalize)
    notes = settings.notes
    if preprocessor and preprocessor.tokenizer.kind == "byte_pair":
        notes += ("white space at both ends of a text is dropped there, and read here",)
    return embedder, _of_embedder(report, embedder, notes)


def _preprocessor(model, settings):
    """Returns the preprocessor of an embedder, `None` without a tokenizer."""
    if model.preprocessor is None:
        return None
    longest = model.backbone.max_sequence_length
    return TupeTextClassifierPreprocessor(
        model.preprocessor.tokenizer,
        sequence_length=min(settings.length or longest, longest),
        segments=bool(model.backbone.num_segments),
    )


def _of_embedder(report, embedder, notes):
    """Returns a report on a masked language model without what an embedder has not: the head."""
    known = set(weights_by_path(embedder))
    return dataclasses.replace(
        report,
        kept=tuple(path for path in report.kept if path in known),
        new={path: why for path, why in report.new.items() if path in known},
        notes=(*report.notes, *notes),
    )
