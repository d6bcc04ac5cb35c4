"""Small BERTs of ours and of Hugging Face, for tests of conversions."""

import functools
import json
import tempfile

import keras
import numpy as np
import safetensors.numpy

from keras_tupe.convert import to_hf
from keras_tupe.models import TupeBackbone, TupeMaskedLM

CONFIG = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "vocab_size": 11,
    "hidden_size": 6,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 7,
    "max_position_embeddings": 5,
}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "on", "mat"]


def scrambled(model):
    """Gives every weight of a model other random numbers; zeros and ones hide mistakes."""
    random = np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(0.5 * random.standard_normal(weight.shape))
    return model


def tiny_model(position="absolute", options=None, **kwargs):
    """Returns a masked LM with random weights, with two segments unless told otherwise."""
    sizes = {"num_segments": 2, "max_sequence_length": 9, "layer_norm_epsilon": 1e-12, **kwargs}
    if position != "absolute" and options is None:
        options = {"share_heads": True}
    return scrambled(TupeMaskedLM(TupeBackbone(13, 1, 3, 15, 8, position, options, **sizes)))


def tiny_inputs(model, length=7):
    """Returns a batch with padding and segments, and all places to predict at."""
    random = np.random.default_rng(3)
    ids = random.integers(0, model.backbone.vocabulary_size, (3, length), dtype="int32")
    mask = np.ones_like(ids)
    mask[0, length - 2 :] = 0
    inputs = {"token_ids": ids, "padding_mask": mask}
    if model.backbone.num_segments:
        inputs["segment_ids"] = np.repeat([[0] * 3 + [1] * (length - 3)], 3, 0).astype("int32")
    return {**inputs, "mask_positions": np.tile(np.arange(length, dtype="int32"), (3, 1))}


def outputs(model, inputs):
    """Returns logits, sequence output and pooled output of a masked LM."""
    of_backbone = {name: inputs[name] for name in inputs if name != "mask_positions"}
    found = {"logits": model(inputs), **model.backbone(of_backbone)}
    return {name: keras.ops.convert_to_numpy(value) for name, value in found.items()}


@functools.cache
def _released():
    config = {"num_segments": 2, "max_sequence_length": 5, "layer_norm_epsilon": 1e-12}
    model = scrambled(TupeMaskedLM(TupeBackbone(11, 1, 2, 6, 7, "absolute", **config)))
    with tempfile.TemporaryDirectory() as folder:
        to_hf(model, f"{folder}/bert", "bert")
        return safetensors.numpy.load_file(f"{folder}/bert/model.safetensors")


def released_weights(**changes):
    """Returns the weights of a `CONFIG` checkpoint, float32; `None` in `changes` removes one."""
    found = {**_released(), **changes}
    return {name: value for name, value in found.items() if value is not None}


def write_hf(folder, config=None, weights=None, pieces=None, settings=None):
    """Writes a Hugging Face folder and returns its path; `None` in `config` removes an entry."""
    folder.mkdir(exist_ok=True)
    content = {**CONFIG, **(config or {})}
    content = {name: value for name, value in content.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(content))
    weights = released_weights() if weights is None else weights
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    if pieces is not None:
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
