"""The registry, and a method from a single file outside the package."""

import dataclasses
import pathlib
import pkgutil

import keras
import numpy as np
import pytest
from position_cases import METHOD_NAMES, Case, MethodLayers, encoder, inputs, outputs, random_ids
from test_positions import check_parity

from keras_tupe import positions
from keras_tupe.layers import AbstractSelfAttention
from keras_tupe.models import TupeBackbone

OUTSIDE = pathlib.Path(__file__).parent / "outside" / "linear_slope.py"


def test_the_file_is_the_whole_contribution(linear_slope):
    assert linear_slope == "linear_slope"
    assert len(OUTSIDE.read_text(encoding="utf-8").splitlines()) < 55
    assert positions.get("linear_slope") is positions.METHODS["linear_slope"]
    assert positions.get("linear_slope").summary == "fixed linear penalty on distance"


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])
def test_its_attention_equals_its_oracle(linear_slope, dtype, tolerance, padding):
    for options in ((), (("slope", 0.3),)):
        method = MethodLayers(Case(linear_slope, options), dtype)
        check_parity(method, (1, 2, 7, 17), padding, tolerance)


def test_every_function_of_the_records_is_called_with_its_arguments(linear_slope):
    for name in (linear_slope, *METHOD_NAMES):
        method = positions.get(name)
        dims = positions.Dims(num_heads=2, key_dim=5, max_sequence_length=17)
        options = method.resolve()
        layers = {
            place: factory(dims, options)
            for place in ("embed", "bias", "shared", "attention")
            if (factory := getattr(method, place))
        }
        assert isinstance(layers.pop("attention"), AbstractSelfAttention), name
        assert all(isinstance(layer, keras.layers.Layer | None) for layer in layers.values()), name
        dead = method.dead_weights(dims, options)
        assert all(isinstance(record, positions.DeadWeight) for record in dead), name
        assert isinstance(method.has_length_limit(options), bool), name


@pytest.mark.parametrize("dtype", ["float64", "mixed_float16"])
def test_it_gives_a_working_encoder(linear_slope, dtype):
    model = encoder(Case(linear_slope, (("slope", 0.3),)), dtype)
    token_ids = random_ids(2, 40)
    sequence, pooled = outputs(model, inputs(token_ids))
    assert np.isfinite(sequence).all()
    order = np.r_[0, np.random.permutation(np.arange(1, 40))]
    assert np.abs(outputs(model, inputs(token_ids[:, order]))[1] - pooled).max() > 1e-3


def test_its_encoder_goes_to_disk_and_comes_back(linear_slope, tmp_path):
    model = encoder(Case(linear_slope, (("slope", 0.3),)))
    given = inputs(random_ids(2, 7))
    clone = TupeBackbone.from_config(model.get_config())
    assert clone.get_config() == model.get_config()
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.saving.load_model(tmp_path / "model.keras"),
        TupeBackbone.from_preset(str(tmp_path / "preset"), dtype="float64"),
    ):
        assert loaded.position_options == {"slope": 0.3}
        for got, wanted in zip(outputs(loaded, given), outputs(model, given), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_file_may_be_loaded_again_and_then_replaces_itself(linear_slope, tmp_path):
    file = tmp_path / OUTSIDE.name
    file.write_text(OUTSIDE.read_text(encoding="utf-8").replace("fixed linear", "steady"))
    assert positions.load_file(str(file)) == "linear_slope"
    assert positions.get("linear_slope").summary == "steady penalty on distance"


def test_a_file_may_use_postponed_annotations_and_dataclasses(loaded_files, tmp_path):
    file = tmp_path / "annotated.py"
    file.write_text(
        "from __future__ import annotations\n"
        "import dataclasses\n"
        "from keras_tupe.positions import none\n"
        "@dataclasses.dataclass\n"
        "class Settings:\n"
        "    rate: float = 1.0\n"
        "METHOD = none.METHOD\n",
        encoding="utf-8",
    )
    assert positions.load_file(file) == "annotated"


@pytest.mark.parametrize(
    ("file_name", "text", "message"),
    [
        ("raises.py", "1 / 0", "could not be run: ZeroDivisionError: division by zero"),
        ("broken.py", "def f(:", "could not be run: SyntaxError"),
        ("imports.py", "import no_such_module", "ModuleNotFoundError: No module named"),
        ("nothing.py", "x = 1", "must define METHOD(.|\n)*METHOD=None"),
        ("wrong.py", "METHOD = 3", "must define METHOD(.|\n)*METHOD=3"),
        ("tupe_r.py", "METHOD = 3", "a position method called 'tupe_r' already. Rename"),
        ("my-method.py", "METHOD = 3", "must be a Python identifier(.|\n)*Rename"),
        ("_hidden.py", "METHOD = 3", "not start with an underscore"),
        ("notes.txt", "METHOD = 3", "loaded from an existing Python file"),
    ],
)
def test_files_that_are_no_method_are_refused(loaded_files, tmp_path, file_name, text, message):
    before = dict(positions.METHODS)
    file = tmp_path / file_name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        positions.load_file(file)
    assert f"Received: path={str(file)!r}" in str(caught.value)
    assert before == positions.METHODS


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    (tmp_path / "folder.py").mkdir()
    for path in (tmp_path / "missing.py", tmp_path / "folder.py"):
        with pytest.raises(ValueError, match=r"an existing Python file\. Received: path="):
            positions.load_file(path)


def test_a_file_that_breaks_on_reloading_leaves_the_method_as_it_was(linear_slope, tmp_path):
    before = positions.get("linear_slope")
    (tmp_path / OUTSIDE.name).write_text("1 / 0", encoding="utf-8")
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        positions.load_file(tmp_path / OUTSIDE.name)
    assert positions.get("linear_slope") is before


def test_the_registry_is_the_folder():
    files = {
        module.name
        for module in pkgutil.iter_modules(positions.__path__)
        if not module.name.startswith("_")
    }
    assert files == set(positions.METHODS)
    assert {
        "none",
        "absolute",
        "sinusoidal",
        "t5",
        "bert_r",
        "tupe_a",
        "tupe_r",
        "tupe_a_tied_cls",
        "tupe_r_tied_cls",
        "bert_ad",
    } <= files


@pytest.mark.parametrize("name", sorted(positions.METHODS))
def test_every_record_is_complete(name):
    method = positions.get(name)
    assert "\n" not in method.summary
    assert 0 < len(method.summary) < 90
    assert method.source
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.summary = "another"


def test_a_record_without_an_oracle_cannot_be_made():
    with pytest.raises(TypeError, match="logits_oracle"):
        positions.PositionMethod(summary="no equation", source="nowhere")


def no_arguments():
    return ()


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("logits_oracle", "tokens, weights, dims, options"),
        ("embed", "dims, options"),
        ("bias", "dims, options"),
        ("shared", "dims, options"),
        ("attention", "dims, options"),
        ("dead_weights", "dims, options"),
        ("has_length_limit", "options"),
    ],
)
@pytest.mark.parametrize("value", [no_arguments, lambda one, two, three: (), "a string"])
def test_a_record_with_a_function_of_other_arguments_cannot_be_made(field, arguments, value):
    described = r"a function of \((one, two, three)?\)" if callable(value) else "'a string'"
    message = (
        rf"`{field}` .* function of \({arguments}\)(, or None)?\. Received: {field}={described}"
    )
    with pytest.raises(TypeError, match=message):
        dataclasses.replace(positions.get("none"), **{field: value})


def test_functions_of_a_record_may_have_more_optional_arguments_or_be_classes():
    def dead_weights(*arguments):
        return ()

    class Attention:
        def __init__(self, dims, options, more=None):
            pass

    record = dataclasses.replace(
        positions.get("none"), dead_weights=dead_weights, attention=Attention, bias=None
    )
    assert record.attention is Attention


def test_a_file_whose_record_has_a_wrong_function_is_refused(loaded_files, tmp_path):
    file = tmp_path / OUTSIDE.name
    text = OUTSIDE.read_text(encoding="utf-8")
    file.write_text(
        text.replace("dead_weights=lambda dims, options", "dead_weights=lambda options"),
        encoding="utf-8",
    )
    message = r"`dead_weights` .* of \(dims, options\)\. Received: dead_weights=a function of"
    with pytest.raises(ValueError, match=message):
        positions.load_file(file)


WRONG_BIAS = """
import keras
from keras import ops
from keras_tupe.positions import PositionMethod, none

class WrongBias(keras.layers.Layer):
    def call(self, hidden_states):
        length = ops.shape(hidden_states)[1]
        return ops.zeros({shape})

METHOD = PositionMethod(
    summary="a bias of a wrong shape",
    source="a test",
    logits_oracle=none.logits_oracle,
    bias=lambda dims, options: WrongBias(name="position_bias"),
)
"""


@pytest.mark.parametrize(
    "shape",
    ["(1, 2, length)", "(1, 3, length, length)", "(2, length, length)", "(1, 1, 1, length)"],
)
def test_a_method_whose_bias_has_a_wrong_shape_is_refused_at_the_door(
    loaded_files, tmp_path, shape
):
    file = tmp_path / "wrong_bias.py"
    file.write_text(WRONG_BIAS.format(shape=shape), encoding="utf-8")
    name = positions.load_file(file)
    message = r"`position_bias` must have the shape \(1 or batch, num_heads(.|\n)*Received:"
    with pytest.raises(ValueError, match=message):
        encoder(Case(name))
