"""How far another runtime is from Keras."""

import itertools
import time

from keras_tupe.export._checks import check_length, check_model
from keras_tupe.export.portable.file import PortableFile
from keras_tupe.export.portable.function import float32_model
from keras_tupe.export.portable.litert import run_litert, to_litert
from keras_tupe.export.portable.onnx import run_onnx, to_onnx
from keras_tupe.export.portable.parity import worst_difference

FORMATS = {"onnx": (to_onnx, run_onnx), "litert": (to_litert, run_litert)}


def portable_difference(model, format, lengths=(1, 7, 128, 512), batches=(1, 5)):
    """Converts a model and returns how far its runtime is from Keras, without writing a file.

    Args:
        model: a `TupeBackbone`, or a `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`.
        format: `"onnx"` or `"litert"`.
        lengths: tokens per row to try.
        batches: numbers of rows to try.

    Returns:
        The record that `export_onnx` returns, with `path=None`: `bytes`, `seconds`, and in
        `worst` the worst difference, `value`, with its `output`, `length` and `batch`.

    Raises:
        ImportError, TypeError, RuntimeError: as `export_onnx`; a large difference is no error.
        ValueError: for an unknown format or a length that the model has no positions for.
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {list(FORMATS)}. Received: format={format!r}")
    backbone = check_model(model)
    for length in lengths:
        check_length(backbone, length)
    convert, load = FORMATS[format]
    model = float32_model(model)
    start = time.monotonic()
    content = convert(model)
    seconds = time.monotonic() - start
    worst = worst_difference(model, load(content), itertools.product(batches, lengths))
    return PortableFile(None, len(content), seconds, worst)
