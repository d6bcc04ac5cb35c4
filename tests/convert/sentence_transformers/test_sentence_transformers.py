"""Folders of sentence-transformers become embedders."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from hf_cases import check_equal, golden_copy, inputs_of, values

from keras_tupe.convert import from_sentence_transformers, to_sentence_transformers
from keras_tupe.models import (
    TupeBackbone,
    TupeMaskedLM,
    TupeTextClassifierPreprocessor,
    TupeTextEmbedder,
)

FOLDER = GOLDEN / "sentence_transformers"
POOLING, ENCODER = "1_Pooling/config.json", "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
FLAGS = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}


def changed(folder, name, content):
    """Changes entries of a JSON file of a folder; a list replaces the file; returns the folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, dict):
        content = {**(json.loads(path.read_text()) if path.exists() else {}), **content}
    path.write_text(json.dumps(content))
    return folder


@pytest.fixture
def copied(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "copied")


def modules(*kinds):
    """Returns a list of modules, the first in the folder itself, as the library writes it."""
    return [
        {"path": f"{n}_{kind}" if n else "", "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]


def refusal(folder):
    with pytest.raises(ValueError, match="Received: ") as caught:
        from_sentence_transformers(folder)
    return str(caught.value)


def pooled_by(folder, *flags):
    settings = {f"pooling_mode_{flag}": flag in flags for flag in (*FLAGS.values(), *flags)}
    return changed(folder, "1_Pooling/config.json", settings)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_vectors_of_texts_are_the_librarys(kind, dtype, tolerance, tensorflow):
    folder = FOLDER if kind == "bert" else FOLDER.with_name(f"{FOLDER.name}_{kind}")
    golden = np.load(folder.with_suffix(".npz"))
    model, report = from_sentence_transformers(folder, dtype=dtype)
    texts = golden["texts"].tolist()
    assert_close(model.embed(texts), golden["mean_normalized"], tolerance)
    np.testing.assert_array_equal(model.preprocessor(texts)["token_ids"], golden["token_ids"])
    assert (model.pooling, model.normalize) == ("mean", True)
    assert model.preprocessor.sequence_length == 10
    assert len(report.kept) == len(model.weights)
    assert not report.new
    assert not report.dropped


def test_the_names_of_version_6_are_read(copied):
    kinds = [
        {"path": path, "type": f"sentence_transformers.sentence_transformer.modules.{kind}"}
        for path, kind in (
            ("", "transformer.Transformer"),
            ("1_Pooling", "pooling.Pooling"),
            ("2_Normalize", "normalize.Normalize"),
        )
    ]
    (copied / "modules.json").write_text(json.dumps(kinds))
    for pooling in FLAGS:
        (copied / POOLING).write_text(json.dumps({"pooling_mode": pooling}))
        model, _ = from_sentence_transformers(copied)
        assert (model.pooling, model.normalize) == (pooling, True)
    changed(copied, POOLING, {"pooling_mode": "lasttoken"})
    assert "not 'lasttoken'" in refusal(copied)


@pytest.mark.parametrize("normalize", [False, True])
def test_every_pooling_is_the_librarys(normalize, copied):
    skip_float64_on_jax("float64")
    golden = np.load(FOLDER.with_suffix(".npz"))
    if not normalize:
        changed(copied, "modules.json", json.loads((copied / "modules.json").read_text())[:2])
    ids = golden["token_ids"]
    given = {"token_ids": ids, "padding_mask": np.sign(ids), "segment_ids": 0 * ids}
    for pooling, flag in FLAGS.items():
        model, _ = from_sentence_transformers(pooled_by(copied, flag), dtype="float64")
        wanted = golden[f"{pooling}_{'normalized' if normalize else 'plain'}"]
        assert_close(model.embed(given), wanted, 1e-10)


def test_older_layouts_are_read(copied, tensorflow, tmp_path):
    inner = copied / "0_Transformer"
    inner.mkdir()
    for path in copied.glob("*.*"):
        if path.name not in ("modules.json", "config_sentence_transformers.json"):
            path.rename(inner / path.name)
    (inner / "sentence_bert_config.json").rename(inner / "sentence_roberta_config.json")
    listed = modules("Transformer", "Pooling", "Normalize")
    listed[0]["path"] = inner.name
    model, _ = from_sentence_transformers(changed(copied, "modules.json", listed))
    golden = np.load(FOLDER.with_suffix(".npz"))
    assert_close(model.embed(golden["texts"].tolist()), golden["mean_normalized"], 2e-5)
    model.save_to_preset(str(tmp_path / "preset"))
    again = TupeTextEmbedder.from_preset(str(tmp_path / "preset"))
    np.testing.assert_array_equal(again.embed("The cat!"), model.embed("The cat!"))


def test_a_longformer_has_no_global_tokens(tmp_path):
    folder = golden_copy("longformer", tmp_path / "longformer")
    changed(folder, "modules.json", modules("Transformer", "Pooling"))
    pooled_by(folder, "mean_tokens")
    model, _ = from_sentence_transformers(folder)
    golden = np.load(GOLDEN / "longformer.npz")
    given, real = inputs_of(golden, "_17")
    states = golden["hidden_states_local_17"]
    wanted = [rows[kept].mean(axis=0) for rows, kept in zip(states, real, strict=True)]
    assert_close(model.embed(given), np.array(wanted), 2e-5)


def test_other_modules_are_named(copied):
    changed(copied, "modules.json", modules("Transformer", "Pooling", "Dense", "Normalize"))
    message = refusal(copied)
    assert "sentence_transformers.models.Dense ('2_Dense')" in message
    changed(copied, "modules.json", modules("WordEmbeddings", "Pooling"))
    assert "models.WordEmbeddings" in refusal(copied)
    other = [{**one, "type": f"my.{one['type']}"} for one in modules("Transformer", "Pooling")]
    assert "my.sentence_transformers.models.Pooling" in refusal(
        changed(copied, "modules.json", other)
    )
    (copied / "modules.json").write_text("[")
    assert "modules.json must be JSON" in refusal(copied)


def test_all_settings_without_a_counterpart_are_named_at_once(copied):
    pooled_by(copied, "weightedmean_tokens")
    changed(copied, ENCODER, {"max_seq_length": "long"})
    changed(copied, PROMPTS, {"prompts": {"query": "query: "}, "default_prompt_name": "query"})
    message = refusal(copied)
    for part in ("not pooling_mode_weightedmean_tokens", "max_seq_length", "default_prompt_name"):
        assert part in message, part
    message = refusal(pooled_by(copied, "cls_token", "max_tokens"))
    assert "pooling_mode_cls_token and pooling_mode_max_tokens" in message


def test_values_of_another_type_are_refused_by_name(tmp_path):
    for number, (file, content, expected) in enumerate(
        (
            (ENCODER, {"do_lower_case": 1}, "do_lower_case must be true or false, not 1"),
            *(
                (
                    ENCODER,
                    {"max_seq_length": x},
                    f"max_seq_length must be an integer > 0, not {x!r}",
                )
                for x in ("10", 10.0, True, 0)
            ),
            ("tokenizer_config.json", {"model_max_length": "512"}, "model_max_length must be an"),
            (POOLING, {"pooling_mode_cls_token": "false"}, "pooling_mode_cls_token must be true"),
            (POOLING, {"pooling_mode": None}, "pooling_mode must be one of"),
            ("modules.json", [{"type": 1, "path": ""}], "must list modules with a `type`"),
            ("modules.json", ["Transformer"], "must list modules with a `type`"),
            (PROMPTS, {"prompts": {"a": 3}}, "prompts must be texts by name"),
            (PROMPTS, {"default_prompt_name": {"a": 1}}, "prompts must be texts by name"),
        )
    ):
        folder = shutil.copytree(FOLDER, tmp_path / f"{number}")
        assert expected in refusal(changed(folder, file, content))


def test_a_prompt_that_is_not_the_default_is_a_note(copied):
    changed(copied, "config_sentence_transformers.json", {"prompts": {"query": "query: "}})
    _, report = from_sentence_transformers(copied)
    assert "the prompt 'query' is not applied: write 'query: '" in " ".join(report.notes)


def test_files_that_are_missing_lie_elsewhere_or_are_lower_cased_twice_are_refused(copied):
    lower = {"do_lower_case": True}
    assert from_sentence_transformers(changed(copied, "sentence_bert_config.json", lower))
    changed(copied, "tokenizer_config.json", {"do_lower_case": False})
    (copied / "tokenizer.json").unlink()
    assert "do_lower_case=True for a tokenizer that keeps" in refusal(copied)
    outside = modules("Transformer", "Pooling")
    for path in ("../elsewhere", "/etc", "a\0b"):
        outside[1]["path"] = path
        assert "must lie in its folder" in refusal(changed(copied, "modules.json", outside))
    (copied / "modules.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"must hold modules\.json"):
        from_sentence_transformers(copied)


def test_a_causal_model_is_refused(tmp_path):
    folder = golden_copy("gpt2", tmp_path / "gpt2")
    changed(folder, "modules.json", modules("Transformer", "Pooling"))
    pooled_by(folder, "mean_tokens")
    assert "model_type='gpt2'" in refusal(folder)


# Back


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", False), ("cls", True), ("max", True)])
def test_an_embedder_comes_back(pooling, normalize, tensorflow, tmp_path):
    model, _ = from_sentence_transformers(FOLDER)
    model = TupeTextEmbedder(model.backbone, model.preprocessor, pooling, normalize)
    to_sentence_transformers(model, tmp_path / "there")
    again, report = from_sentence_transformers(tmp_path / "there")
    assert (again.pooling, again.normalize) == (pooling, normalize)
    assert again.preprocessor.sequence_length == 10
    assert not report.new
    check_equal(values(again), values(model))


def test_what_is_written_is_what_the_library_wrote(tmp_path):
    model, _ = from_sentence_transformers(FOLDER)
    to_sentence_transformers(model, tmp_path / "there")
    both = (tmp_path / "there", FOLDER)
    for name in (ENCODER, POOLING, "modules.json"):
        ours, theirs = (json.loads((x / name).read_text()) for x in both)
        assert ours == theirs
    configs = [json.loads((x / "config.json").read_text()) for x in both]
    assert [config["architectures"] for config in configs] == [["BertModel"]] * 2
    check_equal(*(safetensors.numpy.load_file(x / "model.safetensors") for x in both))


def test_what_the_library_would_compute_otherwise_is_refused(tmp_path):
    model, _ = from_sentence_transformers(FOLDER)
    text, backbone = model.preprocessor, model.backbone
    with pytest.raises(TypeError, match="must be a `TupeTextEmbedder`. .*TupeMaskedLM"):
        to_sentence_transformers(TupeMaskedLM(backbone), tmp_path / "there")
    bare = TupeTextClassifierPreprocessor(text.tokenizer, 8, segments=True, add_start_token=False)
    for other, expected in (
        (TupeTextEmbedder(backbone), "no tokenizer"),
        (TupeTextEmbedder(backbone, bare), "add_start_token=False must be True"),
        (embedder("none"), "position='none' must be 'absolute'"),
        (embedder(attention_pattern="causal"), "a causal encoder"),
    ):
        with pytest.raises(ValueError, match="Received: ") as caught:
            to_sentence_transformers(other, tmp_path / "there")
        assert expected in str(caught.value)
    windows = {"attention_pattern": "sliding_window"}
    windows["pattern_options"] = {"window": 2, "num_global": 1, "separate_global": True}
    with pytest.raises(ValueError, match="num_global=1 must be 0"):
        to_sentence_transformers(embedder(**windows), tmp_path / "there")
    assert list(tmp_path.iterdir()) == []


def embedder(position="absolute", **options):
    """Returns an embedder with the vocabulary of the library's."""
    text = from_sentence_transformers(FOLDER)[0].preprocessor
    size = text.tokenizer.vocabulary_size()
    backbone = TupeBackbone(size, 1, 2, 6, 8, position, max_sequence_length=10, **options)
    return TupeTextEmbedder(backbone, TupeTextClassifierPreprocessor(text.tokenizer, 8))
