import shutil

import h5py
import keras
import keras_hub
import numpy as np
import pytest
from bert_cases import PIECES, scrambled, tiny_inputs
from golden_cases import assert_close

from keras_tupe.convert import from_keras_hub_bert, load

SIZES = {"max_sequence_length": 9, "num_segments": 2}


def their_model(vocabulary_size=13, preprocessor=None):
    backbone = keras_hub.models.BertBackbone(vocabulary_size, 2, 3, 15, 8, **SIZES)
    return scrambled(keras_hub.models.BertMaskedLM(backbone, preprocessor))


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A preset of KerasHub's masked LM, and the model in it."""
    folder = tmp_path_factory.mktemp("keras_hub") / "bert"
    model = their_model()
    model.save_to_preset(str(folder))
    return folder, model


def exact(model):
    """Takes from KerasHub's model what the report says is otherwise: gelu and an epsilon."""
    for layer in model.backbone.transformer_layers:
        layer._feedforward_intermediate_dense.activation = keras.activations.gelu
    model.masked_lm_head._intermediate_layer_norm.epsilon = 1e-12


def answers(model, inputs):
    of_backbone = {name: inputs[name] for name in inputs if name != "mask_positions"}
    found = {"logits": model(inputs), **model.backbone(of_backbone)}
    return {name: keras.ops.convert_to_numpy(value) for name, value in found.items()}


def test_a_preset_computes_what_keras_hub_does_but_for_what_the_report_says(preset):
    folder, theirs = preset
    model, report = load(folder)
    assert model.backbone.position == "absolute"
    assert len(report.kept) == len(model.weights) == len(theirs.weights)
    assert not report.new
    assert not report.dropped
    inputs = tiny_inputs(model)
    ours, before = answers(model, inputs), answers(theirs, inputs)
    exact(theirs)
    real = inputs["padding_mask"].astype(bool)
    for name, value in answers(theirs, inputs).items():
        shown = slice(None) if name == "pooled_output" else real
        assert_close(ours[name][shown], value[shown], 2e-5)
    difference = np.abs(ours["sequence_output"] - before["sequence_output"])[real].max()
    assert 1e-5 < difference < 2e-2
    for part in ("tanh approximation of gelu", "epsilon 1e-12", "takes token ids only"):
        assert part in str(report)


@pytest.mark.parametrize("head", [None, keras_hub.models.BertTextClassifier])
def test_an_encoder_gets_a_new_head_and_that_of_another_task_is_dropped(head, tmp_path):
    backbone = scrambled(keras_hub.models.BertBackbone(13, 1, 3, 15, 8, **SIZES))
    (head(backbone, num_classes=2) if head else backbone).save_to_preset(str(tmp_path))
    model, report = from_keras_hub_bert(str(tmp_path))
    assert {path.split("/")[0] for path in report.new} == {"mlm_head"}
    assert list(report.dropped) == (["task.weights.h5"] if head else [])
    assert ("BertTextClassifier" in str(report)) == bool(head)
    expected = backbone.get_layer("pooled_dense").kernel
    np.testing.assert_array_equal(model.backbone.get_layer("pooled_dense").kernel, expected)


@pytest.mark.parametrize("lowercase", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_their_vocabulary_becomes_our_tokenizer(lowercase, tmp_path):
    pytest.importorskip("tensorflow_text")
    tokenizer = keras_hub.models.BertTokenizer([*PIECES, "Mat"], lowercase=lowercase)
    preprocessor = keras_hub.models.BertMaskedLMPreprocessor(tokenizer, sequence_length=9)
    their_model(12, preprocessor).save_to_preset(str(tmp_path))
    model, report = from_keras_hub_bert(tmp_path)
    texts = ["the cats sat on the Mat", "A cat"]
    expected = [list(map(int, row)) for row in tokenizer(texts)]
    assert model.preprocessor.tokenizer(texts) == expected
    assert model.preprocessor.segments
    assert ("keeps accents" in str(report)) == lowercase


def changed(folder, preset, file, change):
    """Copies a preset with one changed file."""
    shutil.copytree(preset, folder, dirs_exist_ok=True)
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    return folder


MORE, FEWER = ((b'"num_layers": 2', b'"num_layers": %d' % n) for n in (3, 1))
LEFT = "Left over: layers/transformer_encoder_1/_feedforward_intermediate_dense/vars/0, "
BROKEN = [  # a file, what of it becomes what, and what is said
    ("config.json", (b"hub>Bert", b"hub>Albert"), "keras_hub>AlbertBackbone'"),
    ("config.json", (b"vocabulary_size", b"size"), "vocabulary_size is missing"),
    ("config.json", None, "config.json must be JSON"),
    ("config.json", MORE, "transformer_layer_2/feedforward_output_dense/kernel: missing"),
    ("task.json", FEWER, LEFT),
    ("model.weights.h5", None, "The weights file is damaged"),
]


@pytest.mark.parametrize(("file", "change", "expected"), BROKEN)
def test_a_preset_that_is_not_whole_or_no_bert_is_named(file, change, expected, preset, tmp_path):
    def broken(content):
        return content.replace(*change) if change else content[: len(content) // 2]

    with pytest.raises(ValueError, match="Received: .*") as caught:
        from_keras_hub_bert(changed(tmp_path, preset[0], file, broken))
    assert expected in str(caught.value)


def test_links_out_of_the_folder_and_weights_that_are_not_numbers_are_refused(preset, tmp_path):
    for name in ("config.json", "model.weights.h5", "task.json"):
        folder = changed(tmp_path / name, preset[0], name, bytes)
        (folder / name).unlink()
        (folder / name).symlink_to(preset[0] / name)
        with pytest.raises(ValueError, match="a link to elsewhere"):
            from_keras_hub_bert(folder)
    folder = changed(tmp_path / "nan", preset[0], "metadata.json", bytes)
    with h5py.File(folder / "model.weights.h5", "a") as weights:
        weights["layers/dense/vars/1"][0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        from_keras_hub_bert(folder)


def test_a_vocabulary_of_another_size_is_refused_with_both_sizes(preset, tmp_path):
    folder = changed(tmp_path, preset[0], "metadata.json", bytes)
    (folder / "tokenizer.json").write_text('{"config": {"lowercase": true}}')
    (folder / "assets" / "tokenizer").mkdir(parents=True)
    (folder / "assets" / "tokenizer" / "vocabulary.txt").write_text("\n".join(PIECES))
    with pytest.raises(ValueError, match="which is 13.*Received: 11 pieces"):
        from_keras_hub_bert(folder)
