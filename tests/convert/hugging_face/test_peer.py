"""transformers 4.57.6, in an environment of its own, reads what we write, and we what it writes."""

import json
import pathlib
import subprocess

import keras
import numpy as np
import pytest
from bert_cases import PIECES, scrambled
from golden_cases import GOLDEN
from hf_cases import check_equal, values

from benchmarks.harness.environments import PEER
from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import (
    TupeBackbone,
    TupeCausalLM,
    TupeMaskedLM,
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeTokenDiscriminator,
    TupeTokenizer,
)

WORKER = pathlib.Path(__file__).with_name("peer_worker.py")
LENGTHS = {"": 20, "encoder_": 13, "decoder_": 9}
SHARED = {"position_options": {"share_heads": True}}
NARROW = {"position": "absolute", "embedding_dim": 5, "num_segments": 2}
GPT_2 = {
    "position": "absolute",
    "normalize_first": True,
    "attention_pattern": "causal",
    "normalize_embeddings": False,
    "activation": "gelu_approximate",
}
WINDOWS = {"window": 3, "num_global": 2, "separate_global": True}
RELEASED = {"position_options": {"variant": "released", "k": 7}, "zero_padded_embeddings": True}
MASKED = TupeMaskedLM
# By name, which begins with the model_type: the task, and arguments of its backbone.
CASES = {
    "bert_absolute": (MASKED, {"position": "absolute", "num_segments": 2}),
    "bert_shaw": (MASKED, {"position": "shaw", "layer_norm_epsilon": 1e-5, **SHARED}),
    "bert_qkr_4": (MASKED, {"position": "qkr_4", "num_segments": 2, **SHARED}),
    "albert": (MASKED, {**NARROW, "num_groups": 1}),
    "deberta": (MASKED, {"position": "deberta", **RELEASED}),
    "electra": (MASKED, NARROW),
    "electra_discriminator": (TupeTokenDiscriminator, NARROW),
    "mpnet": (MASKED, {"position": "bert_r"}),
    "roberta": (MASKED, {"position": "absolute"}),
    "roformer": (MASKED, {"position": "rope", "embedding_dim": 5}),
    "gpt2": (TupeCausalLM, GPT_2),
    "longformer": (
        MASKED,
        {
            "position": "absolute",
            "attention_pattern": "sliding_window",
            "pattern_options": WINDOWS,
        },
    ),
    "bart_one": (TupeSeq2SeqLM, {"num_decoder_layers": 1}),
    "bart_scaled": (TupeSeq2SeqLM, {"num_decoder_layers": 3, "scale_embeddings": True}),
    "bart_plain": (TupeSeq2SeqLM, {"num_decoder_layers": 3, "activation": "gelu_approximate"}),
}


def sentences(count):
    """Returns texts of random words, signs, line ends and letters of several scripts."""
    random = np.random.default_rng(4)
    words = ["the", "cat", "It's", "na\u00efve", "", "\n", "12,5", "\u0663", "\u65e5\u672c"]
    words += ["\U0001f600", "\u00e9t\u00e9", "don't", "...", "(x)", "x\u00b2", "\t", "\u2014"]
    letters = [chr(code) for code in (*range(32, 127), *range(0xA1, 0x180), *range(0x3B1, 0x3C9))]

    def word():
        if random.random() < 0.5:
            return words[random.integers(len(words))]
        return "".join(random.choice(letters, random.integers(1, 9)))

    return [" ".join(word() for _ in range(random.integers(1, 20))) for _ in range(count)]


def pairs_of(name):
    return TupeTokenizer(byte_pairs=str(GOLDEN / "byte_pairs" / name / "vocab.json"))


def tokenizer_of(kind):
    """Returns a tokenizer for a kind of model, `None` for most, and the texts to compare."""
    if kind == "bert":
        return TupeTokenizer(PIECES), ["the cats sat on the Mat"]
    if kind in ("gpt2", "longformer", "bart"):
        return pairs_of("gpt2" if kind == "gpt2" else "roberta"), sentences(1000)
    return None, []


def model_of(name, tokenizer):
    """Returns a model with random weights, and rows of ids, masks and segments with padding."""
    task, arguments = CASES[name]
    is_pair = task is TupeSeq2SeqLM
    size = tokenizer.vocabulary_size() if tokenizer else 23
    backbone = (TupeSeq2SeqBackbone if is_pair else TupeBackbone)(
        size, 2, 3, 12, 8, max_sequence_length=25, **{"position": "absolute", **arguments}
    )
    sides = {f"{side}sequence_length": 25 for side in LENGTHS if bool(side) == is_pair}
    if not is_pair and task is not TupeCausalLM:
        sides["segments"] = bool(backbone.num_segments)
    model = scrambled(task(backbone, tokenizer and task.preprocessor_cls(tokenizer, **sides)))
    for block in backbone.blocks if name == "deberta" else ():
        block.attention.key_dense.bias.assign(np.zeros((3, 4)))
    random, inputs = np.random.default_rng(3), {}
    for side in ("encoder_", "decoder_") if is_pair else ("",):
        mask = np.ones((3, LENGTHS[side]), "int32")
        mask[0, -4:] = 0
        mask[2, :3] = side != "encoder_"
        ids = np.where(mask, random.integers(4, size, mask.shape), 1).astype("int32")
        inputs |= {f"{side}token_ids": ids, f"{side}padding_mask": mask}
    if not is_pair and backbone.num_segments:
        inputs["segment_ids"] = random.integers(0, 2, (3, 20)).astype("int32")
    return model, inputs


NAMES = {
    "token_ids": "input_ids",
    "padding_mask": "attention_mask",
    "segment_ids": "token_type_ids",
}


def their_inputs(name, inputs):
    """Returns inputs under the names of transformers."""
    found = {}
    for key, value in inputs.items():
        ours = next(ours for ours in NAMES if key.endswith(ours))
        side = key.removesuffix(ours).removeprefix("encoder_")
        found[f"{side}{NAMES[ours]}"] = value.astype("int64")
    if name == "longformer":
        found["global_attention_mask"] = (np.arange(20) < 2)[None].repeat(3, 0).astype("int64")
    return found


@pytest.mark.slow
def test_transformers_agrees_about_what_we_wrote_and_we_about_what_it_wrote(tensorflow, tmp_path):
    python, reason = PEER.ensure(PEER.default_folder())
    if python is None:
        pytest.skip(f"the environment of transformers cannot be made: {reason}")
    (tmp_path / "ours").mkdir()
    made, texts = {}, {}
    for name in CASES:
        kind = name.partition("_")[0]
        tokenizer, found = tokenizer_of(kind)
        texts |= {name: found} if found else {}
        made[name] = model_of(name, tokenizer)
        to_hf(made[name][0], tmp_path / "ours" / name, kind)
        np.savez(tmp_path / f"{name}_inputs.npz", **their_inputs(name, made[name][1]))
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    done = subprocess.run(
        [python, str(WORKER), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for name, (model, inputs) in made.items():
        found = np.load(tmp_path / f"{name}.npz")
        assert found["missing"].size == found["mismatched"].size == 0, name
        # its masked LMs have no pooler; its encoder, below, reads it
        assert all(".pooler." in key for key in found["unexpected"]), name
        given = dict(inputs)
        if isinstance(model, TupeMaskedLM):
            given["mask_positions"] = np.tile(np.arange(20, dtype="int32"), (3, 1))
        logits = keras.ops.convert_to_numpy(model(given))
        real = (inputs.get("decoder_padding_mask", inputs.get("padding_mask"))).astype(bool)
        scale = max(1, np.abs(logits).max())
        assert np.abs(logits - found["logits"])[real].max() <= 1e-5 * scale, name
        if "pooled" in found:
            pooled = keras.ops.convert_to_numpy(model.backbone(inputs)["pooled_output"])
            assert np.abs(pooled - found["pooled"]).max() <= 1e-5, name
        options = {"num_global": 2} if name == "longformer" else {}
        for kind in ("safetensors", "torch"):
            folder = tmp_path / "theirs" / kind / name
            assert len(list(folder.glob("*.index.json"))) == 1, "it is in parts"
            again, report = from_hf(folder, **options)
            expected, kept = values(model), values(again)
            lost = {path.rpartition("/")[0] for path in expected if path not in report.kept}
            assert lost <= {"pooled_dense", "block_0/attention/key", "block_1/attention/key"}
            both = [path for path in report.kept if path in expected]  # not segments of zeros
            check_equal({x: kept[x] for x in both}, {x: expected[x] for x in both})
        if name in texts:
            ids = json.loads((tmp_path / f"{name}.json").read_text())
            for each in (model, again):
                assert ids == [list(map(int, x)) for x in each.preprocessor.tokenizer(texts[name])]
