import json
import pathlib
import shutil
import signal

import commands
import numpy as np
import pytest
from golden_cases import GOLDEN

from keras_tupe.convert import from_hf, from_sentence_transformers, to_hf
from keras_tupe.models import (
    TupeBackbone,
    TupeCausalLM,
    TupeMaskedLM,
    TupeSeq2SeqLM,
    TupeTextClassifier,
    TupeTextEmbedder,
)

OUTSIDE = pathlib.Path(__file__).parents[3] / "examples" / "linear_slope.py"
SIZES = {"num_segments": 2, "max_sequence_length": 9}
HEADS = {TupeTextClassifier: {"num_classes": 2}}


def refuse(*words):
    """Returns what a command line that must not run prints."""
    ended = commands.run("convert", *words)
    assert ended.code in (1, 2)
    assert ended.out == ""
    assert "Traceback" not in ended.err
    return ended.err


def weights(model):
    return [np.asarray(weight) for weight in model.weights]


@pytest.fixture(scope="module")
def model():
    backbone = TupeBackbone(13, 1, 3, 15, 8, "qkr_4", {"share_heads": True}, **SIZES)
    return TupeMaskedLM(backbone)


@pytest.fixture(scope="module")
def source(model, tmp_path_factory):
    """A folder in Hugging Face's format."""
    out = tmp_path_factory.mktemp("convert") / "bert"
    to_hf(model, out, "bert")
    return str(out)


@pytest.fixture(scope="module")
def preset(source, tmp_path_factory):
    """A preset made from that folder."""
    out = tmp_path_factory.mktemp("convert") / "new" / "preset"
    commands.done("convert", source, "--out", out)
    return out


def test_a_hugging_face_folder_becomes_a_preset_and_back(model, preset, tmp_path):
    loaded = TupeMaskedLM.from_preset(str(preset))
    assert loaded.backbone.position == "qkr_4"
    out = tmp_path / "bert"
    assert (
        commands.done("convert", preset, "--out", out, "--format", "huggingface")
        == f"written: {out}\n"
    )
    again, report = from_hf(out)
    assert not report.new
    for each in (loaded, again):
        for ours, theirs in zip(weights(each), weights(model), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_gpt_2_becomes_a_preset_that_can_be_grafted_and_written_again(tmp_path):
    printed = commands.done("convert", GOLDEN / "gpt2", "--out", tmp_path / "gpt2")
    assert "kept     36 weights" in printed
    assert "the source has no pooler" in printed
    model = TupeCausalLM.from_preset(str(tmp_path / "gpt2"))
    commands.done("convert", tmp_path / "gpt2", "--out", tmp_path / "hf", "--format", "huggingface")
    again, _ = from_hf(tmp_path / "hf")
    for ours, theirs in zip(weights(again)[:-2], weights(model)[:-2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    commands.done("convert", tmp_path / "gpt2", "--out", tmp_path / "rope", "--graft", "rope")
    grafted = TupeCausalLM.from_preset(str(tmp_path / "rope")).backbone
    assert (grafted.position, grafted.attention_pattern) == ("rope", "causal")
    assert not grafted.normalize_embeddings


def test_a_bart_becomes_a_preset_that_can_be_written_again(tmp_path):
    printed = commands.done("convert", GOLDEN / "bart" / "small", "--out", tmp_path / "bart")
    assert "kept     49 weights" in printed
    model = TupeSeq2SeqLM.from_preset(str(tmp_path / "bart"))
    commands.done("convert", tmp_path / "bart", "--out", tmp_path / "hf", "--format", "huggingface")
    wanted, _ = from_hf(GOLDEN / "bart" / "small")
    for each in (model, from_hf(tmp_path / "hf")[0]):
        for ours, theirs in zip(weights(each), weights(wanted), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    said = refuse(tmp_path / "bart", "--out", tmp_path / "rope", "--graft", "rope")
    assert "must be a `TupeBackbone` or a task with one" in said


def test_a_folder_of_sentence_transformers_becomes_an_embedder(tmp_path, tensorflow):
    source, out = GOLDEN / "sentence_transformers", tmp_path / "out"
    assert "kept     39 weights" in commands.done("convert", source, "--out", out)
    model, (wanted, _) = TupeTextEmbedder.from_preset(str(out)), from_sentence_transformers(source)
    assert (model.pooling, model.preprocessor.sequence_length) == ("mean", 10)
    for ours, theirs in zip(weights(model), weights(wanted), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    said = refuse(source, "--out", tmp_path / "new", "--num-global", "1")
    assert "`num_global` belongs to a Longformer of Hugging Face" in said


@pytest.mark.parametrize("num_global", [0, 2])
def test_a_longformer_gets_so_many_global_tokens(num_global, tmp_path):
    out = tmp_path / "out"
    printed = commands.done(
        "convert", GOLDEN / "longformer", "--out", out, "--num-global", num_global
    )
    assert ("_global." in printed) == (num_global == 0)
    options = TupeMaskedLM.from_preset(str(out)).backbone.pattern_options
    assert (options["num_global"], options["window"]) == (num_global, 3)


def test_a_graft_is_reported_and_written(preset, tmp_path):
    out = tmp_path / "shaw"
    options = ["--graft", "shaw", "--graft-options", '{"k": 4}', "--graft-length", "40"]
    printed = commands.done("convert", preset, "--out", out, *options)
    assert "dropped  1 weight: of the old method, qkr_4" in printed
    assert "block_0/attention/position_table/distance_embeddings" in printed
    backbone = TupeBackbone.from_preset(str(out))
    assert (backbone.position, backbone.position_options["k"]) == ("shaw", 4)
    assert backbone.max_sequence_length == 40


@pytest.mark.slow
def test_a_released_checkpoint_becomes_a_preset(tmp_path):
    out = tmp_path / "preset"
    assert "kept" in commands.done("convert", GOLDEN / "fairseq_tupe_r.pt", "--out", out)
    assert TupeMaskedLM.from_preset(str(out)).backbone.position == "tupe_r"


@pytest.mark.slow
def test_a_keras_hub_preset_becomes_ours(tmp_path):
    keras_hub = pytest.importorskip("keras_hub")
    keras_hub.models.BertBackbone(13, 1, 3, 15, 8).save_to_preset(str(tmp_path / "bert"))
    assert "gelu" in commands.done(
        "convert", str(tmp_path / "bert"), "--out", str(tmp_path / "out")
    )
    model = TupeMaskedLM.from_preset(str(tmp_path / "out"))
    assert model.backbone.position == "absolute"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(TupeBackbone, marks=pytest.mark.slow),
        TupeTextClassifier,
        pytest.param(TupeTextEmbedder, marks=pytest.mark.slow),
    ],
)
def test_a_preset_stays_of_its_kind(kind, tmp_path):
    model = TupeBackbone(13, 1, 3, 15, 8, "absolute", **SIZES)
    model = model if kind is TupeBackbone else kind(model, **HEADS.get(kind, {}))
    model.save_to_preset(str(tmp_path / "old"))
    commands.done(
        "convert", str(tmp_path / "old"), "--out", str(tmp_path / "new"), "--graft", "none"
    )
    again = kind.from_preset(str(tmp_path / "new"))
    assert getattr(again, "backbone", again).position == "none"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere"], ["must be one of: a .pt file", "'nowhere', which is not there"]),
        ([..., "--model-type", "bert"], ["--model-type needs --format huggingface"]),
        (
            [..., "--model-type", "rob", "--format", "huggingface"],
            ["`model_type` must be one of", "The nearest is 'roberta'"],
        ),
        ([..., "--format", "onnx"], ["--format must be one of", "Received: 'onnx'"]),
        ([..., "--graft", "qkr_5"], ["Did you mean 'qkr_4'", "Received: position='qkr_5'"]),
        ([..., "--graft", "t5", "--graft-options", "k=3"], ["JSON object", "'k=3'"]),
        ([..., "--graft", "t5", "--graft-options", '{"l": 3}'], ["Received: ", "'l'"]),
        ([..., "--graft-options", "{}"], ["--graft-options needs --graft"]),
        ([..., "--graft", "shaw", "--graft-options", '{"k": 99}'], ["Received: k=99"]),
        ([..., "--graft-length", "9"], ["--graft-length needs --graft"]),
        ([..., "--graft", "shaw", "--graft-length", "0"], ["--graft-length must be >= 1"]),
        ([..., "--graft", "shaw", "--graft-length", "9.5"], ["--graft-length must be an integer"]),
        ([..., "--dictionary", "dict.txt"], ["`dictionary` belongs to a TUPE checkpoint"]),
        ([..., "--position-file", "nowhere.py"], ["existing Python file", "nowhere.py"]),
        ([..., "--graft", "t5", "--format", "huggingface"], ["position='t5' must be 'absolute'"]),
        (
            [..., "--num-global", "1"],
            ["`num_global` belongs to a Longformer", "num_global=1"],
        ),
        ([GOLDEN / "gpt2", "--pair-head"], ["`pair_head` belongs to a BERT of Hugging Face"]),
        ([..., "--num-global", "-1"], ["--num-global must be >= 0. Received: -1"]),
        ([..., "--fromat", "preset"], ["unrecognized arguments"]),
        ([], ["SOURCE"]),
    ],
)
def test_mistakes_in_the_command_line_are_answered_with_a_sentence(
    arguments, expected, source, tmp_path
):
    arguments = [source if word is ... else word for word in arguments]
    printed = refuse(*arguments, "--out", tmp_path / "new" / "out")
    for part in expected:
        assert part in printed
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_read_as_a_released_checkpoint(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"no checkpoint")
    printed = refuse(tmp_path / "model.pt", "--out", tmp_path / "out")
    assert "model.pt" in printed
    assert "Received: " in printed
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_all_mistakes_are_named_at_once_before_any_work(tmp_path):
    printed = refuse("nowhere", "--out", tmp_path, "--format", "x", "--graft", "y")
    for part in ("--format must be", "Received: position='y'", "must not exist yet"):
        assert part in printed


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "must hold a JSON object"),
        ("[]", "must hold a JSON object"),
        ("{}", "with `model_type` in its config.json"),
        ('{"registered_name": "keras_tupe>TupeBackbone"}', "The preset is damaged"),
        ('{"registered_name": "keras_hub>GemmaBackbone"}', "keras_hub>GemmaBackbone"),
        ('{"model_type": "llama"}', "must be one of ['albert', 'bart', 'bert', 'deberta', "),
        ('{"model_type": "gpt2"}', "vocab_size is missing; n_positions is missing"),
    ],
)
def test_a_folder_of_something_else_is_named(content, expected, tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "config.json").write_text(content)
    assert expected in refuse(tmp_path / "source", "--out", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_damaged_preset_is_named_and_nothing_is_written(preset, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(preset, source)
    task = json.loads((source / "task.json").read_text())
    task["config"]["backbone"]["config"]["hidden_dim"] = 18
    (source / "task.json").write_text(json.dumps(task))
    printed = refuse(source, "--out", tmp_path / "out")
    assert "could not be loaded" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(("kind", "expected"), [("float64", "float64"), ("mixed_bfloat16", None)])
def test_a_preset_keeps_the_type_of_its_weights(kind, expected, tmp_path):
    backbone = TupeBackbone(13, 1, 3, 15, 8, "absolute", dtype=kind, **SIZES)
    model = TupeMaskedLM(backbone)
    model.save_to_preset(str(tmp_path / "old"))
    commands.done(
        "convert", str(tmp_path / "old"), "--out", str(tmp_path / "new"), "--graft", "none"
    )
    dtype = expected or "float32"
    config = json.loads((tmp_path / "new" / "config.json").read_text())
    assert config["config"]["dtype"]["config"]["name"] == dtype
    again = TupeMaskedLM.from_preset(str(tmp_path / "new"), dtype=dtype)
    assert {weight.dtype for weight in again.weights} == {dtype}
    kept = [weight for weight in weights(model) if weight.shape != (9, 15)]  # but positions
    for ours, theirs in zip(weights(again), kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_stop_leaves_nothing_behind(preset, loaded_files, tmp_path):
    # a method of one's own that stops the command in the middle of writing
    stop = (
        "def save_own_variables(self, store):\n        signal.raise_signal(signal.SIGTERM)\n\n    "
    )
    text = OUTSIDE.read_text(encoding="utf-8").replace("def get_config", f"{stop}def get_config")
    (tmp_path / "stops.py").write_text(text.replace("import keras\n", "import keras, signal\n", 1))
    options = ["--position-file", str(tmp_path / "stops.py"), "--graft", "stops"]
    ended = commands.run("convert", preset, "--out", tmp_path / "new" / "out", *options)
    assert ended.code == 128 + signal.SIGTERM
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"stops.py"}


def test_a_bert_keeps_its_head_of_pairs_if_it_is_asked_for(tmp_path):
    source = GOLDEN / "encoders" / "bert_pair_small"
    printed = commands.done("convert", source, "--out", tmp_path / "preset", "--pair-head")
    assert "new      0 weights" in printed
    out = ("--out", tmp_path / "hf", "--format", "huggingface")
    commands.done("convert", tmp_path / "preset", *out)
    again, _ = from_hf(tmp_path / "hf", pair_head=True)
    model, _ = from_hf(source, pair_head=True)
    for old, new in zip(weights(model), weights(again), strict=True):
        np.testing.assert_array_equal(new, old)
    assert "pair_head=True takes it" in commands.done("convert", source, "--out", tmp_path / "mlm")


@pytest.mark.parametrize("name", ["electra_discriminator_small", "roberta_small"])
def test_encoders_become_presets_and_back(name, tmp_path):
    source, preset = GOLDEN / "encoders" / name, tmp_path / "preset"
    printed = commands.done("convert", source, "--out", preset)
    assert "the source has no pooler; initialized" in printed
    kind = name.partition("_")[0]
    out = ("--out", tmp_path / "hf", "--format", "huggingface", "--model-type", kind)
    commands.done("convert", preset, *out)
    model, _ = from_hf(source)
    again, report = from_hf(tmp_path / "hf")
    assert type(again) is type(model)
    for old, new in zip(model.weights, again.weights, strict=True):
        if old.path.partition("/")[2] not in report.new and "pooled_dense" not in old.path:
            np.testing.assert_array_equal(np.asarray(new), np.asarray(old), err_msg=old.path)


@pytest.mark.parametrize("format", ["preset", "huggingface"])
def test_a_write_that_fails_ends_in_a_sentence_and_leaves_nothing(format, preset, tmp_path):
    with commands.files_of_at_most(3000):
        printed = refuse(preset, "--out", tmp_path / "a" / "out", "--format", format)
    assert ("needs about" if format == "preset" else "cannot be written") in printed
    assert list(tmp_path.iterdir()) == []
