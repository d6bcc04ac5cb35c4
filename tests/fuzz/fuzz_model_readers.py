"""Readers of models and vocabularies: presets, `.keras` files, exports, tokenizers."""

import functools

import keras
import tensorflow as tf
import tiny_vocabularies
from fuzz_engine import Reader

from keras_tupe import (
    SavedEncoder,
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeTextClassifier,
    TupeTextClassifierPreprocessor,
    TupeTokenizer,
)
from keras_tupe.models.saved_encoder import FILE, read_backbone, write_backbone_config
from keras_tupe.tokenizers import SentencePieceBpe, WordPiece
from training.presets import load

_TEXTS = ["The quick brown fox!", "", "dog \u00e9\u4e2d [MASK]", "x" * 300]


def _backbone():
    pieces = tiny_vocabularies.wordpiece_pieces()
    return TupeBackbone(len(pieces), 1, 2, 8, 8, "tupe_r", max_sequence_length=16)


def _write_preset(folder, kind=TupeMaskedLM):
    model, tokenizer = _backbone(), TupeTokenizer(tiny_vocabularies.wordpiece_pieces())
    if kind is TupeMaskedLM:
        model = kind(model, TupeMaskedLMPreprocessor(tokenizer, sequence_length=8))
    if kind is TupeTextClassifier:
        model = kind(model, 2, TupeTextClassifierPreprocessor(tokenizer, sequence_length=8))
    model.save_to_preset(str(folder))


def _preset_reader(kind, of):
    write = functools.partial(_write_preset, kind=of)
    read = functools.partial(_load, kind=kind)
    return Reader(f"preset: {kind.__name__}", write, read, quick=1)


def _load(folder, kind):
    kind.from_preset(str(folder))


def _load_keras_file(folder):
    """Loads a file by Keras, in whose own errors only their being errors counts."""
    try:
        return keras.models.load_model(folder / "model.keras")
    except Exception as error:
        raise ValueError(f"Keras: {error}. Received: a damaged file") from error


_ROWS = tf.TensorSpec((None, None), tf.int32)


class _Plain(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.Variable(tf.ones((3, 2)))

    @tf.function(input_signature=[{"input_word_ids": _ROWS, "input_mask": _ROWS}])
    def __call__(self, inputs):
        return {"sequence_output": tf.gather(self.table, inputs["input_word_ids"])}


def _write_pieces(folder):
    pieces = tiny_vocabularies.wordpiece_pieces()
    text = "".join(f"{piece}\n" for piece in pieces)
    (folder / "vocabulary.txt").write_text(text, encoding="utf-8")


def _write_model(folder):
    (folder / "vocabulary.spm").write_bytes(tiny_vocabularies.sentencepiece_model())


def _use(tokenizer):
    ids = tokenizer.tokenize(_TEXTS)
    tokenizer.detokenize(ids)
    tokenizer.tokenize_with_masks(_TEXTS)
    tokenizer.tokenize_with_offsets(_TEXTS)


READERS = [
    Reader(
        "export: backbone config",
        lambda folder: write_backbone_config(_backbone(), folder),
        lambda folder: read_backbone(folder / FILE),
        files=("*/*.json",),
    ),
    Reader(
        "export: SavedModel",
        lambda folder: tf.saved_model.save(_Plain(), str(folder)),
        lambda folder: SavedEncoder(str(folder)),
        quick=2,
    ),
    Reader("WordPiece", _write_pieces, lambda folder: _use(WordPiece(folder / "vocabulary.txt"))),
    Reader(
        "SentencePiece",
        _write_model,
        lambda folder: _use(SentencePieceBpe(folder / "vocabulary.spm")),
    ),
    _preset_reader(TupeBackbone, TupeBackbone),
    _preset_reader(TupeTextClassifier, TupeTextClassifier),
    _preset_reader(TupeTokenizer, TupeMaskedLM),
    Reader("preset: training.load_preset", _write_preset, load.load_preset, quick=1),
    Reader(
        "preset: .keras file",
        lambda folder: _backbone().save(folder / "model.keras"),
        _load_keras_file,
        quick=1,
    ),
]
