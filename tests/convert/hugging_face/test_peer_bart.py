"""transformers 4.57.6, in an environment of its own, reads our BARTs, and we its."""

import json
import pathlib
import subprocess

import keras
import numpy as np
import pytest
from bert_cases import scrambled
from golden_cases import GOLDEN, assert_close
from hf_cases import check_equal, values

from benchmarks.harness.environments import PEER
from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import (
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeSeq2SeqLMPreprocessor,
    TupeTokenizer,
)

WORKER = pathlib.Path(__file__).with_name("bart_worker.py")
CASES = {
    "one": {"num_layers": 1, "num_decoder_layers": 1},
    "scaled": {"num_layers": 2, "num_decoder_layers": 3, "scale_embeddings": True},
    "plain": {"num_layers": 2, "num_decoder_layers": 3, "activation": "gelu_approximate"},
}
PIECES = json.loads((GOLDEN / "byte_pairs" / "roberta" / "vocab.json").read_text("utf-8"))


def models():
    """Returns a model with random weights of each case, by name."""
    found = {}
    for name, arguments in CASES.items():
        backbone = TupeSeq2SeqBackbone(
            vocabulary_size=len(PIECES),
            num_heads=3,
            hidden_dim=12,
            intermediate_dim=8,
            position="absolute",
            max_sequence_length=25,
            **arguments,
        )
        tokenizer = TupeTokenizer(byte_pairs=str(GOLDEN / "byte_pairs" / "roberta" / "vocab.json"))
        preprocessor = TupeSeq2SeqLMPreprocessor(tokenizer, 25, 25, decoder_starts_with_end=True)
        found[name] = scrambled(TupeSeq2SeqLM(backbone, preprocessor))
    return found


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


@pytest.mark.slow
def test_transformers_agrees_about_barts_that_we_wrote_and_we_about_what_it_wrote(
    tensorflow, tmp_path
):
    python, reason = PEER.ensure(PEER.default_folder())
    if python is None:
        pytest.skip(f"the environment of transformers cannot be made: {reason}")
    ours, texts = models(), sentences(2000)
    (tmp_path / "ours").mkdir()
    for name, model in ours.items():
        to_hf(model, tmp_path / "ours" / name)
    random = np.random.default_rng(3)
    inputs = {}
    for side, length in (("encoder", 13), ("decoder", 9)):
        inputs[f"{side}_token_ids"] = random.integers(4, 480, (3, length), "int32")
        mask = np.ones((3, length), "int32")
        mask[0, length - 4 :] = 0
        inputs[f"{side}_padding_mask"] = mask
    inputs["encoder_padding_mask"][2, :3] = 0
    np.savez(tmp_path / "inputs.npz", **{k: v.astype("int64") for k, v in inputs.items()})
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    done = subprocess.run(
        [python, str(WORKER), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    real = {side: inputs[f"{side}_padding_mask"].astype(bool) for side in ("encoder", "decoder")}
    for name, model in ours.items():
        with np.load(tmp_path / f"{name}.npz") as numbers:
            found = dict(numbers)
        for kind in ("missing", "unexpected", "mismatched"):
            assert found[kind].size == 0, (kind, found[kind])
        again, report = from_hf(tmp_path / "theirs" / name, dtype="float64")
        assert report.new == {}
        check_equal(values(again), {path: x.astype("float64") for path, x in values(model).items()})
        for each, tolerance in ((model, 2e-5), (again, 1e-10)):
            states = each.backbone(inputs)["encoder_sequence_output"]
            states = keras.ops.convert_to_numpy(states)[real["encoder"]]
            assert_close(states, found["encoder"][real["encoder"]], tolerance)
            logits = keras.ops.convert_to_numpy(each(inputs))[real["decoder"]]
            assert_close(logits, found["logits"][real["decoder"]], tolerance)
        ids = json.loads((tmp_path / f"{name}.json").read_text())
        assert [row[1:-1] for row in ids] == [
            list(map(int, row)) for row in again.preprocessor.tokenizer(texts)
        ]
