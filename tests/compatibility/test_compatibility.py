"""Whatever 176042c wrote is loaded and answers the same; new models and trainings are the same."""

import json
import lzma
import pathlib
import tarfile

import keras
import numpy as np
import pytest
from made_once import made_once

pytest.importorskip("tensorflow")
if keras.backend.backend() != "tensorflow":
    pytest.skip("numbers of TensorFlow", allow_module_level=True)

import compatibility_cases as cases
import compatibility_training as training

import keras_tupe
from keras_tupe import models, trainer

DATA = pathlib.Path(__file__).parent / "data"
# 176042c itself, in float32, is up to 1.8e-6 off the same weights in float64: twice that.
TOLERANCE = {"rtol": 2e-6, "atol": 4e-6}
LOSSES = {"rtol": 1e-6, "atol": 0}  # what another order of sums makes of 20 steps is below 4e-7
TASKS = {
    "masked_lm": keras_tupe.TupeMaskedLM,
    "text_classifier": keras_tupe.TupeTextClassifier,
    "span_extractor": keras_tupe.TupeSpanExtractor,
    "causal_lm": keras_tupe.TupeCausalLM,
    "text_embedder": keras_tupe.TupeTextEmbedder,
    "masked_pair_lm": models.TupeMaskedPairLM,
    "token_discriminator": models.TupeTokenDiscriminator,
    "detector": models.TupeReplacedTokenDetector,
    "seq2seq_lm": models.TupeSeq2SeqLM,
}
FEW_TRAININGS = {  # and that of `tupe_r` goes on from a file
    "masked_lm/full/deberta",
    "masked_lm/window/shaw",
    "causal_lm/window/qkr_4",
    "replaced_token/full/xlnet",
}
FEW_WRITERS = {"causal_window/qkr_4"}
FEW_EXPORTS = {"text_model"}


def stored():
    """Returns all answers: name of a thing -> name of an array -> array."""
    found = {}
    with np.load(DATA / "answers.npz") as arrays:
        for name in arrays.files:
            thing, _, array = name.rpartition("/")
            found.setdefault(thing, {})[array] = arrays[name]
    return found


ANSWERS = stored()
with lzma.open(DATA / "first_weights.json.xz", "rt", encoding="utf-8") as file:
    WEIGHTS = json.load(file)
ALL_LOSSES = json.loads((DATA / "losses.json").read_text(encoding="utf-8"))


def named(kind, few=None):
    """Returns the names of one kind as parameters; all but a few of them may be slow."""
    found = [name.partition("/")[2] for name in ANSWERS if name.startswith(f"{kind}/")]
    return some(found, few)


def some(names, few=None):
    """Returns names as parameters, those that are not among a few marked as slow."""
    assert not few or few <= set(names)
    slow = [[] if few is None or name in few else pytest.mark.slow for name in names]
    return [pytest.param(name, marks=mark) for name, mark in zip(names, slow, strict=True)]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The folder of all files that were written."""

    def make(folder):
        with tarfile.open(DATA / "files.tar.xz") as tar:
            tar.extractall(folder, filter="data")

    return made_once(tmp_path_factory, "compatibility", make)


def check(thing, found):
    """Compares all arrays of a thing with what was answered."""
    wanted = ANSWERS[thing]
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        compare(value, np.asarray(found[name]), f"{thing}: {name}")


def compare(wanted, found, name):
    assert found.shape == wanted.shape, name
    assert found.dtype.kind == wanted.dtype.kind, name
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, **TOLERANCE, err_msg=name)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def class_of_backbone(name):
    return models.TupeSeq2SeqBackbone if name.startswith("seq2seq") else keras_tupe.TupeBackbone


@pytest.mark.parametrize("name", named("backbones"))
def test_a_preset_of_a_backbone_has_the_same_first_weights_and_answers(name, files):
    preset = files / "backbones" / name
    keras.utils.set_random_seed(1)
    model = class_of_backbone(name).from_preset(str(preset), load_weights=False)
    first = cases.first_weights(model)
    model.load_weights(str(preset / "model.weights.h5"))
    found = cases.answers(model)
    if "at_positions" in ANSWERS[f"backbones/{name}"]:
        found |= cases.answers_at_positions(model)
    check(f"backbones/{name}", found)
    check_first_weights(name, first)


@pytest.mark.parametrize("name", named("tasks"))
def test_a_preset_of_a_task_answers_the_same(name, files):
    model = TASKS[name.partition("-")[0]].from_preset(str(files / "tasks" / name))
    check(f"tasks/{name}", cases.task_answers(model))


@pytest.mark.parametrize("name", named("keras"))
def test_a_keras_file_answers_the_same(name, files):
    model = keras.models.load_model(files / "keras" / f"{name}.keras")
    is_task = hasattr(model, "backbone")
    check(f"keras/{name}", cases.task_answers(model) if is_task else cases.answers(model))


@pytest.mark.slow
@pytest.mark.parametrize("name", named("patterns"))
def test_the_same_weights_with_another_pattern_answer_the_same(name, files):
    method, pattern = name.split("/")
    model = keras_tupe.TupeBackbone.from_preset(str(files / "backbones" / method))
    if "refused" in ANSWERS[f"patterns/{name}"]:
        with pytest.raises(ValueError, match="Received"):
            cases.with_pattern(model, cases.PATTERNS[pattern])
        return
    check(f"patterns/{name}", cases.answers(cases.with_pattern(model, cases.PATTERNS[pattern])))


@pytest.mark.parametrize("name", named("written", FEW_WRITERS))
def test_a_model_writes_the_same(name):
    """Step by step, with the keys and values of earlier tokens kept."""
    wanted = dict(ANSWERS[f"written/{name}"])
    model = cases.scramble(cases.writers()[name](), int(wanted.pop("seed")))
    found = cases.written(model)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].tolist() == value.tolist()


def test_an_exported_encoder_answers_the_same(files):
    rows = cases.rows()
    given = {"input_word_ids": rows["token_ids"], "input_mask": rows["padding_mask"]}
    path = str(files / "exports" / "encoder")
    saved = models.SavedEncoder(path, mlm=True)
    check("exports/encoder", saved({**given, "masked_lm_positions": rows["mask_positions"]}))
    wanted = ANSWERS["exports/encoder"]
    found = cases.answers(saved.to_backbone())
    mask = rows["padding_mask"][..., None]
    compare(wanted["sequence_output"] * mask, found["sequence_output"], "sequence_output")
    compare(wanted["pooled_output"], found["pooled_output"], "pooled_output")


def test_an_exported_encoder_of_distances_answers_the_same(files):
    rows = cases.rows()
    given = {"input_word_ids": rows["token_ids"], "input_mask": rows["padding_mask"]}
    saved = models.SavedEncoder(str(files / "exports" / "encoder-qkr_4"))
    check("exports/encoder-qkr_4", saved(given))


@pytest.mark.parametrize("name", some(cases.SIGNATURES, FEW_EXPORTS))
def test_an_exported_model_of_texts_answers_the_same(name, files):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    loaded = tf.saved_model.load(str(files / "exports" / name))
    check(f"exports/{name}", cases.served(loaded, cases.SIGNATURES[name]))


@pytest.mark.parametrize(
    "name", some(WEIGHTS, {name for name in WEIGHTS if name.startswith("task/")} | {"tupe_r"})
)
def test_first_weights_of_a_seed_are_the_same(name):
    keras.utils.set_random_seed(1)
    check_first_weights(name, cases.first_weights(cases.new_models()[name]()))


def check_first_weights(name, found):
    wanted = WEIGHTS[name]
    assert [one[:2] for one in found] == [one[:2] for one in wanted]  # paths and shapes, in order
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one[2:], other[2:], rtol=0, atol=2e-7, err_msg=one[0])


@pytest.mark.parametrize("name", some(ALL_LOSSES, FEW_TRAININGS))
def test_a_training_has_the_same_losses(name):
    wanted = ALL_LOSSES[name]
    if wanted is None:
        with pytest.raises(ValueError, match="Received"):
            training.make_trainer(name)
        return
    np.testing.assert_allclose(training.losses_of(training.make_trainer(name)), wanted, **LOSSES)


def test_checkpoints_of_before_are_told(files):
    with pytest.raises(ValueError, match="of an older version.* go on from a preset of that run"):
        trainer.Checkpoints(files / "checkpoints").latest()
