"""One method in one format: how far what was written is from the model it was written from."""

import pathlib
import tempfile

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from keras import ops
from tqdm import tqdm

from keras_tupe import TupeBackbone
from keras_tupe.export import export_encoder, export_text_model, portable_difference
from keras_tupe.tokenizers import WordPiece

LENGTHS = (1, 7, 128, 512)
BATCHES = (1, 5)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS)
OUTPUTS = ("sequence_output", "pooled_output")


def new_encoder(position):
    """Returns a small encoder for 512 tokens, every weight random."""
    keras.utils.set_random_seed(1)
    backbone = TupeBackbone(len(PIECES), 2, 2, 16, 32, position=position, num_segments=2)
    generator = np.random.default_rng(2)
    for weight in backbone.trainable_weights:
        weight.assign(generator.normal(size=weight.shape) * 0.3)
    return backbone


def rows(length, batch):
    """Returns the encoder's inputs, int32 `(batch, length)`, rows padded to different degrees."""
    generator = np.random.default_rng(length)
    ends = np.resize([length, max(1, length - 1), (length + 1) // 2, 1], batch)[:, None]
    mask = np.arange(length) < ends
    ids = generator.integers(5, len(PIECES), (batch, length)) * mask
    ids[:, 0] = 2
    segments = generator.integers(0, 2, (batch, length)) * mask
    values = {"token_ids": ids, "padding_mask": mask, "segment_ids": segments}
    return {name: value.astype("int32") for name, value in values.items()}


def difference(answers, expected, mask):
    """Returns the largest |a - b| / max(1, |b|) over real tokens; infinite if it is no number."""
    worst = 0.0
    for name in OUTPUTS:
        ours, theirs = (ops.convert_to_numpy(found[name]) for found in (answers, expected))
        if name == "sequence_output":
            keep = mask.astype(bool)
            ours, theirs = ours[:, : mask.shape[1]][keep], theirs[keep]
        found = (np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max()
        worst = max(worst, float(found) if np.isfinite(found) else np.inf)
    return worst


def _over_all_shapes(backbone, call):
    found = []
    for length in LENGTHS:
        for batch in BATCHES:
            inputs = rows(length, batch)
            found.append(difference(call(inputs), backbone(inputs), inputs["padding_mask"]))
    return max(found)


def keras_file(backbone, folder):
    """Saves and loads a `.keras` file."""
    path = str(folder / "model.keras")
    backbone.save(path)
    return _over_all_shapes(backbone, keras.saving.load_model(path))


def preset(backbone, folder):
    """Saves a preset and loads it through KerasHub."""
    backbone.save_to_preset(str(folder / "preset"))
    loaded = keras_hub.models.Backbone.from_preset(str(folder / "preset"))
    return _over_all_shapes(backbone, loaded)


def _hub(inputs, length=None):
    names = {
        "token_ids": "input_word_ids",
        "padding_mask": "input_mask",
        "segment_ids": "input_type_ids",
    }
    pad = 0 if length is None else length - inputs["token_ids"].shape[1]
    return {
        names[name]: tf.constant(np.pad(value, ((0, 0), (0, pad))))
        for name, value in inputs.items()
    }


def fixed(backbone, folder):
    """`serving_default` of 512 tokens, shorter rows padded by the client."""
    export_encoder(backbone, folder / "fixed")
    loaded = tf.saved_model.load(str(folder / "fixed"))
    serve = loaded.signatures["serving_default"]
    return _over_all_shapes(backbone, lambda inputs: serve(**_hub(inputs, max(LENGTHS))))


def dynamic(backbone, folder):
    """The object itself, which takes any length."""
    export_encoder(backbone, folder / "dynamic")
    loaded = tf.saved_model.load(str(folder / "dynamic"))
    return _over_all_shapes(backbone, lambda inputs: loaded(_hub(inputs)))


def text(backbone, folder):
    """Texts of as many words as the rows have positions beside [CLS] and [SEP]."""
    export_text_model(backbone, WordPiece(list(PIECES)), folder / "text")
    loaded = tf.saved_model.load(str(folder / "text"))
    serve = loaded.signatures["serving_default"]
    worst = 0.0
    for length in LENGTHS:
        for batch in BATCHES:
            generator = np.random.default_rng(length)
            counts = np.resize([length, max(1, length // 2), 1], batch).clip(max=max(LENGTHS) - 2)
            words = [generator.choice(list(LETTERS), count) for count in counts]
            ids = np.zeros((batch, max(counts) + 2), "int32")
            for row, letters in zip(ids, words, strict=True):
                row[: len(letters) + 2] = [2, *(PIECES.index(letter) for letter in letters), 3]
            inputs = {"token_ids": ids, "padding_mask": (ids > 0).astype("int32")}
            inputs["segment_ids"] = np.zeros_like(ids)
            answers = serve(text=tf.constant([" ".join(letters) for letters in words]))
            found = difference(answers, backbone(inputs), inputs["padding_mask"])
            worst = max(worst, found)
    return worst


def _portable(format):
    def cell(backbone, folder):
        """Converts and runs in the format's own runtime."""
        return portable_difference(backbone, format, LENGTHS, BATCHES).worst.value

    return cell


CELLS = {
    ".keras": keras_file,
    "preset": preset,
    "SavedModel, fixed": fixed,
    "SavedModel, dynamic": dynamic,
    "SavedModel, text": text,
    "ONNX": _portable("onnx"),
    "LiteRT": _portable("litert"),
}
LIMITS = {name: 1e-4 if name in ("ONNX", "LiteRT") else 1e-5 for name in CELLS}


def measure(position, name):
    """Returns the worst difference of a method in a format, over all lengths and batches."""
    with tempfile.TemporaryDirectory() as folder:
        return CELLS[name](new_encoder(position), pathlib.Path(folder))


def collect(methods):
    """Measures all formats of some methods; returns method -> format -> difference."""
    found = {}
    with tqdm(total=len(methods) * len(CELLS), unit="cell", disable=None) as bar:
        for position in methods:
            found[position] = {}
            for name in CELLS:
                bar.set_description(f"{position}, {name}")
                found[position][name] = measure(position, name)
                bar.update()
    return found
