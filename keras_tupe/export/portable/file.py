"""One file for another runtime: converted, compared with Keras, then written."""

import dataclasses
import os
import pathlib
import time

from keras_tupe.export._checks import check_model
from keras_tupe.export.portable.function import float32_model
from keras_tupe.export.portable.parity import Difference, check_parity


@dataclasses.dataclass(frozen=True)
class PortableFile:
    """The file that an export for another runtime wrote.

    Attributes:
        path: the file.
        bytes: its size.
        seconds: what the conversion took, the comparison left out.
        worst: the worst difference from the model in Keras.
    """

    path: pathlib.Path
    bytes: int
    seconds: float
    worst: Difference

    def __str__(self):
        return (
            f"{self.path}: {self.bytes / 1e6:.2f} MB, converted in {self.seconds:.1f} s; worst "
            f"difference from Keras: {self.worst}"
        )


def write_portable(model, path, suffix, convert, load):
    """Writes a model in another format once its runtime answers as Keras does.

    Args:
        model: a `TupeBackbone`, or a `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`.
        path: file to make; its name ends with `suffix`.
        suffix: ".onnx" or ".tflite".
        convert: float32 model -> content of the file, bytes.
        load: content -> function of the inputs by name that returns the outputs by name.

    Returns:
        A `PortableFile`.

    Raises:
        TypeError, ValueError: for a model that cannot be exported, another suffix, or a path that
            exists.
        RuntimeError: as `check_parity`.
    """
    check_model(model)
    path = pathlib.Path(path)
    if path.suffix != suffix:
        raise ValueError(
            f"The name of the file must end with {suffix}, by which runtimes know the format. "
            f"Received: path={str(path)!r}"
        )
    if path.exists():
        raise ValueError(
            "The output file exists. Choose another name, or remove it. "
            f"Received: path={str(path)!r}"
        )
    model = float32_model(model)
    start = time.monotonic()
    content = convert(model)
    seconds = time.monotonic() - start
    worst = check_parity(model, load(content))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return PortableFile(path, len(content), seconds, worst)
