"""Readers of models and vocabularies: presets, `.keras` files, exports, tokenizers."""

import functools
import pathlib
import tempfile

import keras
import tiny_vocabularies
from fuzz_engine import Reader

from keras_tupe import (
    SavedEncoder,
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeSpanExtractor,
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


def _task(kind):
    tokenizer = TupeTokenizer(tiny_vocabularies.wordpiece_pieces())
    if kind is TupeMaskedLM:
        return kind(_backbone(), TupeMaskedLMPreprocessor(tokenizer, sequence_length=8))
    preprocessor = TupeTextClassifierPreprocessor(tokenizer, sequence_length=8)
    if kind is TupeTextClassifier:
        return kind(_backbone(), 2, preprocessor)
    return kind(_backbone(), preprocessor=preprocessor)


@functools.cache
def _preset(kind):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (_backbone() if kind is TupeBackbone else _task(kind)).save_to_preset(place)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _write_preset(folder, kind):
    for name, content in _preset(kind).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _preset_reader(kind, of=None):
    of = of or kind
    return Reader(
        f"preset: {kind.__name__}",
        functools.partial(_write_preset, kind=of),
        lambda folder: kind.from_preset(str(folder)),
        quick=1,
    )


@functools.cache
def _keras_file():
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place, "model.keras")
        _backbone().save(path)
        return path.read_bytes()


def _load_keras_file(folder):
    """Loads a file by Keras, in whose own errors only their being errors counts."""
    try:
        return keras.models.load_model(folder / "model.keras")
    except Exception as error:
        raise ValueError(f"Keras: {error}. Received: a damaged file") from error


@functools.cache
def _saved_model():
    import tensorflow as tf

    rows = tf.TensorSpec((None, None), tf.int32)

    class Plain(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(tf.ones((3, 2)))

        @tf.function(input_signature=[{"input_word_ids": rows, "input_mask": rows}])
        def __call__(self, inputs):
            return {"sequence_output": tf.gather(self.table, inputs["input_word_ids"])}

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        tf.saved_model.save(Plain(), place)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _write_saved_model(folder):
    for name, content in _saved_model().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _read_backbone_config(folder):
    return read_backbone(folder / FILE)


def _write_pieces(folder):
    pieces = tiny_vocabularies.wordpiece_pieces()
    text = "".join(f"{piece}\n" for piece in pieces)
    (folder / "vocabulary.txt").write_text(text, encoding="utf-8")


def _use(tokenizer):
    ids = tokenizer.tokenize(_TEXTS)
    tokenizer.detokenize(ids)
    tokenizer.tokenize_with_masks(_TEXTS)
    tokenizer.tokenize_with_offsets(_TEXTS)


READERS = [
    Reader(
        "export: backbone config",
        lambda folder: write_backbone_config(_backbone(), folder),
        _read_backbone_config,
        files=("*/*.json",),
        quick=8,
    ),
    Reader(
        "export: SavedModel",
        _write_saved_model,
        lambda folder: SavedEncoder(str(folder)),
        quick=2,
    ),
    Reader(
        "WordPiece",
        _write_pieces,
        lambda folder: _use(WordPiece(folder / "vocabulary.txt")),
        quick=8,
    ),
    Reader(
        "SentencePiece",
        lambda folder: (
            (folder / "vocabulary.spm").write_bytes(tiny_vocabularies.sentencepiece_model())
            and None
        ),
        lambda folder: _use(SentencePieceBpe(folder / "vocabulary.spm")),
        quick=8,
    ),
    _preset_reader(TupeBackbone),
    _preset_reader(TupeMaskedLM),
    _preset_reader(TupeTextClassifier),
    _preset_reader(TupeSpanExtractor),
    _preset_reader(TupeTokenizer, TupeMaskedLM),
    Reader(
        "preset: training.load_preset",
        functools.partial(_write_preset, kind=TupeMaskedLM),
        load.load_preset,
        quick=1,
    ),
    Reader(
        "preset: .keras file",
        lambda folder: (folder / "model.keras").write_bytes(_keras_file()) and None,
        _load_keras_file,
        quick=1,
    ),
]
