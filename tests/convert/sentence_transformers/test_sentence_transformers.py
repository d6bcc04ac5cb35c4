"""Folders of sentence-transformers become embedders."""

import json
import shutil

import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from hf_cases import golden_copy, inputs_of

from keras_tupe.convert import from_sentence_transformers
from keras_tupe.models import TupeTextEmbedder

FOLDER = GOLDEN / "sentence_transformers"
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


def pooled_by(folder, *flags):
    settings = {f"pooling_mode_{flag}": flag in flags for flag in (*FLAGS.values(), *flags)}
    return changed(folder, "1_Pooling/config.json", settings)


def without_normalize(folder):
    return changed(folder, "modules.json", json.loads((folder / "modules.json").read_text())[:2])


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


@pytest.mark.parametrize("pooling", FLAGS)
def test_the_names_of_version_6_are_read(pooling, copied):
    (copied / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": pooling}))
    start = "sentence_transformers.sentence_transformer.modules"
    kinds = [
        {"path": path, "type": f"{start}.{file}.{kind}"}
        for path, file, kind in (
            ("", "transformer", "Transformer"),
            ("1_Pooling", "pooling", "Pooling"),
            ("2_Normalize", "normalize", "Normalize"),
        )
    ]
    (copied / "modules.json").write_text(json.dumps(kinds))
    model, _ = from_sentence_transformers(copied)
    assert (model.pooling, model.normalize) == (pooling, True)
    changed(copied, "1_Pooling/config.json", {"pooling_mode": "lasttoken"})
    with pytest.raises(ValueError, match="pooling_mode must be one of .*, not 'lasttoken'"):
        from_sentence_transformers(copied)


@pytest.mark.parametrize("pooling", FLAGS)
@pytest.mark.parametrize("normalize", [False, True])
def test_every_pooling_is_the_librarys(pooling, normalize, copied):
    skip_float64_on_jax("float64")
    golden = np.load(FOLDER.with_suffix(".npz"))
    pooled_by(copied, FLAGS[pooling])
    if not normalize:
        without_normalize(copied)
    model, _ = from_sentence_transformers(copied, dtype="float64")
    ids = golden["token_ids"]
    given = {"token_ids": ids, "padding_mask": np.sign(ids), "segment_ids": 0 * ids}
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


def refusal(folder):
    with pytest.raises(ValueError, match="Received: ") as caught:
        from_sentence_transformers(folder)
    return str(caught.value)


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
    assert "must list modules" in refusal(changed(copied, "modules.json", ["Transformer"]))
    (copied / "modules.json").write_text("[")
    assert "modules.json must be JSON" in refusal(copied)


def test_all_settings_without_a_counterpart_are_named_at_once(copied):
    pooled_by(copied, "weightedmean_tokens")
    changed(copied, "sentence_bert_config.json", {"max_seq_length": "long"})
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    changed(copied, "config_sentence_transformers.json", prompts)
    message = refusal(copied)
    for part in ("not pooling_mode_weightedmean_tokens", "max_seq_length", "default_prompt_name"):
        assert part in message, part
    assert "pooling_mode_cls_token and pooling_mode_max_tokens" in refusal(
        pooled_by(copied, "cls_token", "max_tokens")
    )


@pytest.mark.parametrize(
    "content", [{"prompts": [1]}, {"prompts": {"a": 3}}, {"default_prompt_name": {"a": 1}}]
)
def test_prompts_of_another_kind_are_refused(content, copied):
    changed(copied, "config_sentence_transformers.json", content)
    assert "prompts must be texts by name" in refusal(copied)


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
