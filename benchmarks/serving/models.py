"""The SavedModels that are served: made here, or exports that are there."""

import dataclasses
import pathlib

import keras
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from keras_tupe import SIZES, TupeBackbone, TupeMaskedLM
from keras_tupe.export import export_encoder, export_text_model
from keras_tupe.tokenizers import WordPiece

TEXT, IDS = "text", "ids"
KINDS = (TEXT, IDS)
POSITION = "tupe_r"
SIGNATURE = "serving_default"
INPUTS = {TEXT: {"text"}, IDS: {"input_word_ids", "input_mask", "input_type_ids"}}
_TEXT = (
    "a the of to and in is it that was for on are as with they at be this from have or by one had "
    "not but what all were when we there can an your which their said if do will each about how up "
    "out them then she many some so these would other into has more her two like him see time "
    "could no make than first been its who now people my made over did down only way find use may"
)
WORDS = tuple(_TEXT.split())
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclasses.dataclass(frozen=True)
class Served:
    """A model to serve.

    Attributes:
        kind: `"text"`, strings in, or `"ids"`, three int32 `(batch, length)` in; also its name in
            the server.
        folder: `pathlib.Path` of the SavedModel.
        length: tokens of a row of the ids, or `None` for text.
        outputs: names of the outputs that are asked for.
    """

    kind: str
    folder: pathlib.Path
    length: int | None
    outputs: tuple


def describe(folder, wanted=None):
    """Returns the `Served` of a SavedModel.

    Args:
        folder: `pathlib.Path`.
        wanted: names of the outputs to ask for, or `None` for all.

    Raises:
        ValueError: if the folder is not an export that can be served.
    """
    file = folder / "saved_model.pb"
    try:
        graphs = saved_model_pb2.SavedModel.FromString(file.read_bytes()).meta_graphs
    except OSError as error:
        raise ValueError(
            "An export must be the folder of a SavedModel, with a file saved_model.pb, as "
            f"keras_tupe.export writes it. Received: {str(folder)!r}, {error.strerror}"
        ) from error
    except DecodeError as error:
        raise ValueError(f"The file must be a SavedModel. Received: {str(file)!r}") from error
    if not graphs or SIGNATURE not in graphs[0].signature_def:
        raise ValueError(
            f"An export must have the signature {SIGNATURE!r}. Received: {str(folder)!r}, with "
            f"{sorted(graphs[0].signature_def) if graphs else []}"
        )
    signature = graphs[0].signature_def[SIGNATURE]
    kinds = [kind for kind in KINDS if INPUTS[kind] == set(signature.inputs)]
    if not kinds:
        raise ValueError(
            f"An export must take one of {[sorted(names) for names in INPUTS.values()]}. "
            f"Received: {str(folder)!r}, with {sorted(signature.inputs)}"
        )
    length = None
    if kinds[0] == IDS:
        length = signature.inputs["input_word_ids"].tensor_shape.dim[1].size
        if length < 0:
            raise ValueError(
                f"The signature {SIGNATURE!r} must have one fixed length, since servers join "
                f"requests to batches. Export it with a length. Received: {str(folder)!r}"
            )
    outputs = tuple(sorted(signature.outputs)) if wanted is None else tuple(wanted)
    missing = sorted(set(outputs) - set(signature.outputs))
    if missing:
        raise ValueError(
            f"--outputs must be of {sorted(signature.outputs)}, those of {str(folder)!r}. "
            f"Received: {missing}"
        )
    return Served(kinds[0], folder, length, outputs)


def export(folder, size, length):
    """Writes a small masked language model with TUPE-R twice: for text, and for ids.

    Args:
        folder: `pathlib.Path` to write `text` and `ids` into.
        size: name of the model's size.
        length: tokens of a row.

    Returns:
        The two folders.
    """
    vocabulary = list(dict.fromkeys([*_SPECIAL, *WORDS, *_LETTERS, *(f"##{c}" for c in _LETTERS)]))
    keras.utils.set_random_seed(7)
    sizes = dataclasses.asdict(SIZES[size])
    backbone = TupeBackbone(
        len(vocabulary), **sizes, position=POSITION, max_sequence_length=length, dropout=0.0
    )
    model = TupeMaskedLM(backbone)
    generator = np.random.default_rng(7)
    for variable in model.trainable_variables:  # none may be zero, and so without effect
        noise = generator.normal(0, 0.05, variable.shape)
        variable.assign_add(tf.cast(noise, variable.dtype))
    export_text_model(model, WordPiece(vocabulary), folder / TEXT, length=length)
    export_encoder(model, folder / IDS, length=length)
    return folder / TEXT, folder / IDS
