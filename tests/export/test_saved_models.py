"""Exported SavedModels, loaded in a process that knows nothing of this package."""

import json

import numpy as np
import pytest
import tensorflow as tf
from interpreters import python
from made_once import made_once
from portable_cases import out_of_range, rows_of_ones
from saved_cases import VOCABULARY, exported_model, scrambled_model

from keras_tupe.export import export_encoder, export_text_model
from keras_tupe.tokenizers import WordPiece
from training.query import answers as query
from training.query.settings import Settings

ANSWER = """
import json, sys
import numpy as np
import tensorflow as tf

folder, example, answers, *more = sys.argv[1:]
inputs = {name: tf.constant(value) for name, value in np.load(example).items()}
positions = inputs.pop("masked_lm_positions")
encoder = tf.saved_model.load(folder)
serve = encoder.signatures["serving_default"]
length = serve.structured_input_signature[1]["input_word_ids"].shape[1]
results = {"call": encoder(inputs)}
results["serve"] = serve(**{name: value[:, :length] for name, value in inputs.items()})
results["mlm"] = encoder.mlm({**inputs, "masked_lm_positions": positions})
results["short"] = encoder({name: value[:, :4] for name, value in inputs.items()})
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(encoder(inputs, training=True)["pooled_output"] ** 2)
gradients = tape.gradient(loss, encoder.trainable_variables)
np.savez(answers, **{
    f"{name}/{key}": value.numpy()
    for name, result in results.items() for key, value in result.items()
})
ours = [name for name in sys.modules if name.split(".")[0] in ("keras_tupe", "keras_hub")]
print(json.dumps({
    "ours": ours,
    "variables": len(encoder.variables),
    "trainable": len(encoder.trainable_variables),
    "with_gradient": sum(gradient is not None for gradient in gradients),
    "regularization_losses": len(encoder.regularization_losses),
}))
"""

FILL = """
import tensorflow_text

model = tf.saved_model.load(more[0])
texts = tf.constant(json.loads(more[1]))
fill = model.signatures["fill_mask"](text=texts)
serve = model.signatures["serving_default"](text=texts)
embed = model.signatures["embed"](text=texts)
print(json.dumps({
    "tokens": [[token.decode() for token in row] for row in fill["tokens"].numpy()],
    "probabilities": fill["probabilities"].numpy().tolist(),
    "num_masks": fill["num_masks"].numpy().tolist(),
    "pooled_output": serve["pooled_output"].numpy().tolist(),
    "padding_mask": serve["padding_mask"].numpy().tolist(),
    "embedding": embed["embedding"].numpy().tolist(),
}))
"""
TEXTS = ["a [MASK] c", "a b", "a b c d e f g h"]


def example(num_segments=0):
    generator = np.random.default_rng(7)
    token_ids = generator.integers(5, len(VOCABULARY), (3, 7)).astype("int32")
    padding_mask = np.array([[1] * 7, [1] * 4 + [0] * 3, [1] * 6 + [0]], "int32")
    segment_ids = generator.integers(0, max(1, num_segments), (3, 7)).astype("int32")
    mask_positions = np.array([[1, 6], [3, 2], [5, 1]], "int32")
    return token_ids, padding_mask, segment_ids, mask_positions


def text_model():
    """A masked language model without segments, and its tokenizer."""
    return scrambled_model(), WordPiece(VOCABULARY)


@pytest.fixture(scope="module")
def elsewhere(exported, tmp_path_factory):
    """What one other process makes of both exports: folder, facts of the encoder, and of texts."""

    def make(folder):
        folder.mkdir()
        write_example(folder, 2)
        export_text_model(*text_model(), folder / "text", top=3)
        words = (exported, folder / "example.npz", folder / "answers.npz", folder / "text")
        printed = python("-c", ANSWER + FILL, *words, json.dumps(TEXTS))
        (folder / "printed.txt").write_text(printed, encoding="utf-8")

    folder = made_once(tmp_path_factory, "elsewhere", make)
    printed = (folder / "printed.txt").read_text(encoding="utf-8").splitlines()
    return folder, *map(json.loads, printed[-2:])


def write_example(folder, num_segments):
    names = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")
    given = dict(zip(names, example(num_segments), strict=True))
    np.savez(folder / "example.npz", **given)


def check_answers(model, facts, answers, num_segments, length, tolerance, losses=0):
    """Compares what `ANSWER` found, with signatures of a length, with the model itself."""
    token_ids, padding_mask, segment_ids, mask_positions = example(num_segments)
    inputs = {"token_ids": token_ids, "padding_mask": padding_mask}
    if num_segments:
        inputs["segment_ids"] = segment_ids
    short = {name: value[:, :length] for name, value in inputs.items()}
    for call, given in (("call", inputs), ("mlm", inputs), ("serve", short)):
        for name, value in model.backbone(given).items():
            expected = tf.cast(value, "float32").numpy()
            np.testing.assert_allclose(answers[f"{call}/{name}"], expected, atol=tolerance)
            assert answers[f"{call}/{name}"].dtype == np.float32
        np.testing.assert_array_equal(answers[f"{call}/default"], answers[f"{call}/pooled_output"])
    logits = model({**inputs, "mask_positions": mask_positions}).numpy()
    np.testing.assert_allclose(answers["mlm/mlm_logits"], logits, atol=tolerance * 3)
    assert answers["short/sequence_output"].shape == (3, 4, 6)
    assert facts["ours"] == []
    assert facts["variables"] == len(model.backbone.variables)
    assert facts["trainable"] == len(model.backbone.trainable_variables) == facts["with_gradient"]
    assert facts["regularization_losses"] == losses


def test_exported_encoder_answers_as_the_model_in_another_process(elsewhere):
    folder, facts, _ = elsewhere
    answers = np.load(folder / "answers.npz")
    check_answers(exported_model(), facts, answers, 2, 5, 1e-5, losses=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_segments", "dtype", "tolerance"),
    [(2, "float32", 1e-5), (0, "mixed_bfloat16", 3e-2)],  # bfloat16 keeps 8 bits
)
def test_two_layers_and_half_precision_answer_as_the_model(
    tmp_path, num_segments, dtype, tolerance
):
    model = scrambled_model(dtype, num_layers=2, num_segments=num_segments)
    export_encoder(model, tmp_path / "model")
    write_example(tmp_path, num_segments)
    paths = (tmp_path / name for name in ("model", "example.npz", "answers.npz"))
    facts = json.loads(python("-c", ANSWER, *paths).splitlines()[-1])
    answers = np.load(tmp_path / "answers.npz")
    check_answers(model, facts, answers, num_segments, 7, tolerance)


@pytest.mark.slow
def test_default_signature_has_one_length_and_the_dynamic_one_must_be_asked_for(tmp_path):
    model = scrambled_model()
    export_encoder(model, tmp_path / "fixed", length=5)
    export_encoder(model.backbone, tmp_path / "dynamic", dynamic_length=True)
    fixed = tf.saved_model.load(str(tmp_path / "fixed"))
    dynamic = tf.saved_model.load(str(tmp_path / "dynamic"))
    assert sorted(fixed.signatures) == ["encode", "serving_default"]
    assert sorted(dynamic.signatures) == ["dynamic_length", "encode", "serving_default"]
    assert not hasattr(dynamic, "mlm"), "a backbone has no head"

    def length(function):
        return {spec.shape[1] for spec in function.structured_input_signature[1].values()}

    assert length(fixed.signatures["serving_default"]) == {5}
    assert length(dynamic.signatures["serving_default"]) == {7}
    assert length(dynamic.signatures["dynamic_length"]) == {None}


@pytest.fixture(scope="module")
def loaded(exported):
    """The masked language model of `exported`, and its SavedModel."""
    return exported_model(), tf.saved_model.load(str(exported))


def without_positions(inputs):
    return {name: value for name, value in inputs.items() if name != "masked_lm_positions"}


def tensors(inputs):
    return {name: tf.constant(value) for name, value in inputs.items()}


def test_ids_and_positions_out_of_their_range_are_told_in_a_sentence(loaded):
    model, encoder = loaded
    signatures = [encoder.signatures[name] for name in ("serving_default", "dynamic_length")]
    for name, value in out_of_range(model, length=5):
        inputs = tensors(rows_of_ones(2, 5, **{name: value}))
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` must lie in") as error:
            encoder.mlm(inputs)
        assert str(value) in str(error.value)
        for signature in signatures if name != "masked_lm_positions" else ():
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` must lie in"):
                signature(**without_positions(inputs))
    ids = {"token_ids": "input_word_ids", "padding_mask": "input_mask"}
    inputs = rows_of_ones(2, 5, input_word_ids=-1)
    given = {name: tf.constant(inputs[hub]) for name, hub in ids.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match="`token_ids` must lie in"):
        encoder.signatures["encode"](**given, segment_ids=tf.zeros((2, 5), "int32"))


def test_inputs_of_other_shapes_are_told_in_a_sentence(loaded):
    _, encoder = loaded
    serve = encoder.signatures["serving_default"]
    for name in ("input_mask", "input_type_ids"):
        inputs = without_positions(rows_of_ones(2, 5))
        inputs[name] = inputs[name][:, :3]
        for call in (encoder, lambda inputs: serve(**inputs)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"`{name}` must have the sh"):
                call(tensors(inputs))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have 5 tokens per row"):
        serve(**tensors(without_positions(rows_of_ones(2, 4))))
    inputs = {**rows_of_ones(2, 5), "masked_lm_positions": np.ones((3, 2), "int32")}
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the batch of"):
        encoder.mlm(tensors(inputs))


def test_types_may_be_left_out_of_a_call_and_are_zeros(loaded):
    _, encoder = loaded
    inputs = {**rows_of_ones(2, 4), "input_type_ids": np.zeros((2, 4), "int32")}
    for call, given in ((encoder, without_positions(inputs)), (encoder.mlm, inputs)):
        wanted = call(tensors(given))
        given = {name: value for name, value in given.items() if name != "input_type_ids"}
        for name, value in call(tensors(given)).items():
            np.testing.assert_array_equal(value, wanted[name])


def test_training_flag_of_the_loaded_encoder_turns_dropout_on(loaded):
    _, encoder = loaded
    ids = tf.constant(example()[0])
    inputs = dict.fromkeys(("input_mask", "input_type_ids"), tf.ones_like(ids))
    inputs["input_word_ids"] = ids
    calls = [encoder(inputs, training=flag)["default"].numpy() for flag in (False, False, True)]
    np.testing.assert_array_equal(calls[0], calls[1])
    assert np.abs(calls[0] - calls[2]).max() > 1e-3


def test_text_model_fills_blanks_and_embeds_in_another_process(elsewhere, capsys):
    folder, _, answers = elsewhere
    model, _ = text_model()
    rows = [[2, 5, 1, 1, 1, 7, 3], [2, 5, 6, 3, 0, 0, 0], [2, 5, 6, 7, 8, 9, 3]]
    token_ids = np.array(rows, "int32")  # [MASK] is text, but for fill_mask
    inputs = {"token_ids": token_ids, "padding_mask": (token_ids > 0).astype("int32")}
    outputs = model.backbone(inputs)
    np.testing.assert_allclose(answers["pooled_output"], outputs["pooled_output"], atol=1e-5)
    assert answers["padding_mask"] == inputs["padding_mask"].tolist()
    assert answers["num_masks"] == [1, 0, 0]
    masked = np.array([[2, 5, 4, 7, 3, 0, 0]], "int32")
    blank = {"token_ids": masked, "padding_mask": (masked > 0).astype("int32")}
    logits = model({**blank, "mask_positions": np.array([[2]])}).numpy()[0, 0]
    ordinary = np.exp(logits[5:]) / np.exp(logits[5:]).sum()
    best = np.argsort(-ordinary)[:3]
    assert answers["tokens"][0] == [VOCABULARY[5 + index] for index in best]
    np.testing.assert_allclose(answers["probabilities"][0], ordinary[best], atol=1e-5)
    mean = outputs["sequence_output"].numpy()[1, 1:3].mean(axis=0)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(answers["embedding"][1], expected, atol=1e-5)
    asked = Settings(str(folder), fill=("a [MASK] c",), nearest=("a b",))
    assert query.answer(asked), "the questions of training.query"
    assert capsys.readouterr().out.startswith("a [MASK] c\n    ")


@pytest.mark.parametrize("length", [0, 8, 2.5])
def test_impossible_lengths_are_refused_and_nothing_is_written(tmp_path, length):
    with pytest.raises(ValueError, match=r"`length` must.*Received: length="):
        export_encoder(scrambled_model(), tmp_path / "model", length=length)
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    tokenizer = WordPiece([*VOCABULARY, "z"])
    with pytest.raises(ValueError, match="the one that the model was trained with"):
        export_text_model(scrambled_model(), tokenizer, tmp_path / "text")
    assert list(tmp_path.iterdir()) == []
