"""transformers 4.57.6, in an environment of its own, reads our GPT-2 and Longformer, and we its."""

import json
import pathlib
import subprocess

import keras
import numpy as np
import pytest
from bert_cases import scrambled
from hf_cases import BYTE_PAIRS, check_equal, values

from benchmarks.harness.environments import PEER
from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import (
    TupeBackbone,
    TupeCausalLM,
    TupeCausalLMPreprocessor,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeTokenizer,
)

WORKER = pathlib.Path(__file__).with_name("patterns_worker.py")
GPT_2 = {
    "normalize_first": True,
    "attention_pattern": "causal",
    "normalize_embeddings": False,
    "activation": "gelu_approximate",
}
OPTIONS = {"window": 3, "num_global": 2, "separate_global": True}
LONGFORMER = {"attention_pattern": "sliding_window", "pattern_options": OPTIONS}
TEXTS = ["The quick brown  fox", "it's \n\n 日本 😀", "naïve\u00a0café ٣"]


def models():
    classes = {
        "gpt2": (TupeCausalLM, TupeCausalLMPreprocessor, GPT_2),
        "longformer": (TupeMaskedLM, TupeMaskedLMPreprocessor, LONGFORMER),
    }
    for name, (task, preprocessor, arguments) in classes.items():
        tokenizer = TupeTokenizer(byte_pairs=str(BYTE_PAIRS[name] / "vocab.json"))
        backbone = TupeBackbone(481, 2, 3, 15, 8, "absolute", max_sequence_length=25, **arguments)
        yield name, scrambled(task(backbone, preprocessor(tokenizer, sequence_length=25)))


@pytest.mark.slow
def test_transformers_agrees_about_what_we_wrote_and_we_about_what_it_wrote(tensorflow, tmp_path):
    python, reason = PEER.ensure(PEER.default_folder())
    if python is None:
        pytest.skip(f"the environment of transformers cannot be made: {reason}")
    ours = dict(models())
    (tmp_path / "ours").mkdir()
    for name, model in ours.items():
        to_hf(model, tmp_path / "ours" / name)
    ids = np.random.default_rng(3).integers(4, 480, (3, 20))
    mask = np.ones_like(ids)
    mask[0, 15:] = 0
    is_global = np.zeros_like(ids)
    is_global[:, :2] = 1
    np.savez(
        tmp_path / "inputs.npz",
        input_ids=np.where(mask, ids, 1),
        attention_mask=mask,
        global_attention_mask=is_global,
    )
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS))
    done = subprocess.run(
        [python, str(WORKER), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    inputs = {"token_ids": ids.astype("int32"), "padding_mask": mask.astype("int32")}
    places = {"mask_positions": np.tile(np.arange(20, dtype="int32"), (3, 1))}
    real = mask.astype(bool)
    for name, model in ours.items():
        with np.load(tmp_path / f"{name}.npz") as numbers:
            found = dict(numbers)
        given = inputs if name == "gpt2" else {**inputs, **places}
        logits = keras.ops.convert_to_numpy(model(given))
        scale = max(1, np.abs(logits).max())
        assert np.abs(logits - found["logits"])[real].max() <= 1e-5 * scale
        assert found["missing"].size == found["mismatched"].size == 0
        pooler = {"longformer.pooler.dense.weight", "longformer.pooler.dense.bias"}
        assert set(found["unexpected"]) == (pooler if name == "longformer" else set())
        ids = np.concatenate(model.preprocessor.tokenizer(TEXTS))
        np.testing.assert_array_equal(found["tokens"], ids)
        options = {} if name == "gpt2" else {"num_global": 2}
        again, report = from_hf(tmp_path / "theirs" / name, **options)
        assert again.preprocessor is not None, report.notes
        expected, kept = values(model), values(again)
        assert set(report.new) == {"pooled_dense/kernel", "pooled_dense/bias"}
        check_equal(
            {path: kept[path] for path in report.kept},
            {path: expected[path] for path in report.kept},
        )
        assert len(report.kept) == len(expected) - 2
