"""transformers 4.57.6, in an environment of its own, reads our encoders, and we its."""

import json
import pathlib
import subprocess

import keras
import numpy as np
import pytest
from bert_cases import scrambled
from hf_cases import check_equal, values

from benchmarks.harness.environments import PEER
from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeTokenDiscriminator

WORKER = pathlib.Path(__file__).with_name("patterns_worker.py")
RELEASED = {
    "position": "deberta",
    "position_options": {"variant": "released", "k": 7},
    "zero_padded_embeddings": True,
}
KINDS = {
    "albert": {"position": "absolute", "embedding_dim": 5, "num_groups": 1, "num_segments": 2},
    "deberta": RELEASED,
    "electra": {"position": "absolute", "embedding_dim": 5, "num_segments": 2},
    "electra_discriminator": {"position": "absolute", "embedding_dim": 5, "num_segments": 2},
    "mpnet": {"position": "bert_r"},
    "roberta": {"position": "absolute"},
    "roformer": {"position": "rope", "embedding_dim": 5},
}


def models():
    """Returns a model with random weights of each kind, by name."""
    found = {}
    for name, arguments in KINDS.items():
        task = TupeTokenDiscriminator if "discriminator" in name else TupeMaskedLM
        backbone = TupeBackbone(23, 2, 3, 12, 8, max_sequence_length=25, **arguments)
        found[name] = scrambled(task(backbone))
        for block in backbone.blocks if name == "deberta" else ():
            block.attention.key_dense.bias.assign(np.zeros((3, 4)))
    return found


@pytest.mark.slow
def test_transformers_agrees_about_encoders_that_we_wrote_and_we_about_what_it_wrote(tmp_path):
    python, reason = PEER.ensure(PEER.default_folder())
    if python is None:
        pytest.skip(f"the environment of transformers cannot be made: {reason}")
    ours = models()
    (tmp_path / "ours").mkdir()
    for name, model in ours.items():
        to_hf(model, tmp_path / "ours" / name, model_type=name.partition("_")[0])
    ids = np.random.default_rng(3).integers(4, 23, (3, 20))
    mask = np.ones_like(ids)
    mask[0, 15:] = 0
    np.savez(tmp_path / "inputs.npz", input_ids=np.where(mask, ids, 1), attention_mask=mask)
    (tmp_path / "texts.json").write_text(json.dumps([]))
    done = subprocess.run(
        [python, str(WORKER), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    real = mask.astype(bool)
    for name, model in ours.items():
        with np.load(tmp_path / f"{name}.npz") as numbers:
            found = dict(numbers)
        inputs = {"token_ids": np.where(mask, ids, 1), "padding_mask": mask}
        if model.backbone.num_segments:
            inputs["segment_ids"] = np.zeros_like(ids)
        if isinstance(model, TupeMaskedLM):
            inputs["mask_positions"] = np.tile(np.arange(20), (3, 1))
        logits = keras.ops.convert_to_numpy(
            model({key: value.astype("int32") for key, value in inputs.items()})
        )
        scale = max(1, np.abs(logits).max())
        assert np.abs(logits - found["logits"])[real].max() <= 1e-5 * scale, name
        assert found["missing"].size == found["mismatched"].size == 0, name
        assert all(".pooler." in key for key in found["unexpected"]), name
        again, report = from_hf(tmp_path / "theirs" / name)
        expected, kept = values(model), values(again)
        lost = {path.rpartition("/")[0] for path in expected if path not in report.kept}
        assert lost <= {"pooled_dense", "block_0/attention/key", "block_1/attention/key"}
        both = [path for path in report.kept if path in expected]  # not segments of zeros
        check_equal({path: kept[path] for path in both}, {path: expected[path] for path in both})
