"""An embedder as a SavedModel: strings in, vectors out; and its ids-in signature and files."""

import json

import commands
import numpy as np
import pytest
import tensorflow as tf
from embedder_cases import LENGTH, TEXTS, text_embedder
from interpreters import python

from keras_tupe import TupeTextEmbedder
from keras_tupe.export import export_encoder, portable_difference
from keras_tupe.export.portable.function import float32_model
from keras_tupe.export.text_model import text_functions

LOAD = """
import json, sys
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
found = model.signatures["embed"](text=tf.constant(json.loads(sys.argv[2])))
ours = [name for name in sys.modules if name.split(".")[0] in ("keras_tupe", "keras_hub")]
print(json.dumps({"ours": ours, "embedding": found["embedding"].numpy().tolist()}))
"""


@pytest.mark.parametrize(
    "pooling", ["mean", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cls", "max"))]
)
def test_texts_become_the_models_vectors_and_empty_ones_are_refused(pooling):
    model = text_embedder(pooling=pooling, normalize=pooling == "mean")
    embed = text_functions(model, model.preprocessor)["embed"]
    found = embed(text=tf.constant(TEXTS))
    assert list(found) == ["embedding"]
    np.testing.assert_allclose(found["embedding"], model.embed(TEXTS), atol=1e-5)
    for empty in ("", " \t"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have at least one token"):
            embed(text=tf.constant(["a", empty]))


@pytest.mark.slow
def test_the_command_writes_what_another_process_asks_for_vectors(tmp_path):
    model = text_embedder()
    model.save_to_preset(str(tmp_path / "preset"))
    out = tmp_path / "out"
    assert "largest relative difference" in commands.done(
        "export", tmp_path / "preset", "--out", out
    )
    found = json.loads(python("-c", LOAD, out / "text", json.dumps(TEXTS)).splitlines()[-1])
    assert found["ours"] == []
    np.testing.assert_allclose(found["embedding"], model.embed(TEXTS), atol=1e-5)
    with np.load(out / "example.npz") as archive:
        example = dict(archive)
    example["embedding"] = example["embedding"] + 1e-2
    np.savez(out / "example.npz", **example)
    assert commands.run("query", out).code == 1, "another vector must be seen"


@pytest.mark.slow
def test_ids_become_vectors_too(tmp_path):
    model = text_embedder(pooling="max")
    export_encoder(model, tmp_path / "model", LENGTH)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    rows = model.preprocessor(TEXTS)
    names = {"token_ids": "word_ids", "padding_mask": "mask", "segment_ids": "type_ids"}
    given = {f"input_{hub}": tf.cast(rows[name], tf.int32) for name, hub in names.items()}
    found = loaded.signatures["embed"](**given)["embedding"]
    np.testing.assert_allclose(found, model.embed(TEXTS), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["onnx", "litert"])
def test_other_runtimes_give_the_same_vectors(format):
    pytest.importorskip({"onnx": "onnxruntime", "litert": "ai_edge_litert"}[format])
    model = text_embedder(pooling="mean")
    worst = portable_difference(model, format, lengths=(1, 7), batches=(1, 3)).worst
    assert worst.value <= 1e-4


def test_a_copy_in_float32_keeps_the_pooling():
    model = text_embedder(pooling="max", normalize=False)
    half = TupeTextEmbedder.from_config(
        {**model.get_config(), "backbone": half_precision(model.backbone), "preprocessor": None}
    )
    copy = float32_model(half)
    assert (copy.pooling, copy.normalize) == ("max", False)
    assert copy.backbone.dtype_policy.name == "float32"


def half_precision(backbone):
    return type(backbone).from_config({**backbone.get_config(), "dtype": "mixed_bfloat16"})
