"""transformers 4.57.6, in an environment of its own, reads what we write and the other way."""

import pathlib
import subprocess

import numpy as np
import pytest
from bert_cases import PIECES, outputs, scrambled, tiny_inputs

from benchmarks.harness.environments import PEER
from keras_tupe.convert import from_hf, to_hf
from keras_tupe.convert._weights import weights_by_path
from keras_tupe.models import (
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeTokenizer,
)

WORKER = pathlib.Path(__file__).with_name("peer_worker.py")
INPUTS = {
    "input_ids": "token_ids",
    "attention_mask": "padding_mask",
    "token_type_ids": "segment_ids",
}
CASES = {
    "absolute": {},
    "shaw": {"position_options": {"share_heads": True}, "layer_norm_epsilon": 1e-5},
    "qkr_4": {"position_options": {"share_heads": True}, "num_segments": 0},
}


def case(position):
    sizes = {"max_sequence_length": 9, "num_segments": 2, **CASES[position]}
    backbone = TupeBackbone(len(PIECES), 2, 3, 15, 8, position, **sizes)
    preprocessor = TupeMaskedLMPreprocessor(
        TupeTokenizer(PIECES), sequence_length=9, segments=bool(backbone.num_segments)
    )
    return scrambled(TupeMaskedLM(backbone, preprocessor))


@pytest.mark.slow
def test_transformers_agrees_about_what_we_wrote_and_we_about_what_it_wrote(tensorflow, tmp_path):
    python, reason = PEER.ensure(PEER.default_folder())
    if python is None:
        pytest.skip(f"the environment of transformers cannot be made: {reason}")
    models = {position: case(position) for position in CASES}
    (tmp_path / "ours").mkdir()
    for position, model in models.items():
        to_hf(model, tmp_path / "ours" / position, "bert")
    inputs = tiny_inputs(models["absolute"])
    theirs = {name: inputs[ours].astype("int64") for name, ours in INPUTS.items()}
    np.savez(tmp_path / "inputs.npz", **theirs)
    done = subprocess.run(
        [python, str(WORKER), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    real = inputs["padding_mask"].astype(bool)
    assert not real.all(), "padding is part of the comparison"
    for position, model in models.items():
        found = np.load(tmp_path / f"{position}.npz")
        given = {name: inputs[name] for name in (*model.backbone.input, "mask_positions")}
        ours = outputs(model, given)
        scale = max(1, np.abs(ours["logits"]).max())
        assert np.abs(ours["logits"] - found["logits"])[real].max() <= 1e-5 * scale
        assert np.abs(ours["pooled_output"] - found["pooled"]).max() <= 1e-5
        assert found["missing"].size == found["mismatched"].size == 0
        # its masked LM has no pooler; its encoder, above, read it
        assert set(found["unexpected"]) == {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
        ids = model.preprocessor.tokenizer("the cats sat on the Mat")
        assert found["tokens"][1:-1].tolist() == list(map(int, ids))
        for kind in ("safetensors", "torch"):
            folder = tmp_path / "theirs" / kind / position
            assert len(list(folder.glob("*.index.json"))) == 1, "it is in parts"
            again, report = from_hf(folder)
            assert set(report.new) == {"pooled_dense/kernel", "pooled_dense/bias"}
            before, after = weights_by_path(model), weights_by_path(again)
            for path in set(report.kept) & set(before):
                np.testing.assert_array_equal(after[path], before[path], err_msg=path)
