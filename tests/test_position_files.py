"""The registry, and a method from a single file outside the package."""

import dataclasses
import pathlib

import keras
import pytest
from position_cases import METHOD_NAMES, Case, encoder

from keras_tupe import positions
from training.check.method import record
from training.check.promise import BrokenPromiseError

OUTSIDE = pathlib.Path(__file__).parents[1] / "examples" / "linear_slope.py"


def test_a_file_may_be_loaded_again_and_replaces_itself_unless_it_breaks(linear_slope, tmp_path):
    file = tmp_path / OUTSIDE.name
    file.write_text(OUTSIDE.read_text(encoding="utf-8").replace("fixed linear", "steady"))
    assert positions.load_file(str(file)) == "linear_slope"
    before = positions.get("linear_slope")
    assert before.summary == "steady penalty on distance"
    file.write_text("1 / 0", encoding="utf-8")
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        positions.load_file(file)
    assert positions.get("linear_slope") is before


@pytest.mark.parametrize(
    ("file_name", "text", "message"),
    [
        ("raises.py", "1 / 0", "could not be run: ZeroDivisionError: division by zero"),
        ("broken.py", "def f(:", "could not be run: SyntaxError"),
        ("imports.py", "import no_such_module", "ModuleNotFoundError: No module named"),
        ("nothing.py", "x = 1", "must define METHOD(.|\n)*METHOD=None"),
        ("wrong.py", "METHOD = 3", "must define METHOD(.|\n)*METHOD=3"),
        ("tupe_r.py", "METHOD = 3", "a position method called 'tupe_r' already. Rename"),
        ("my-method.py", "METHOD = 3", "an identifier that does not start(.|\n)*Rename"),
        ("_hidden.py", "METHOD = 3", "not start with an underscore"),
        ("notes.txt", "METHOD = 3", "loaded from an existing Python file"),
        ("missing.py", None, "an existing Python file"),
        ("", None, "an existing Python file"),  # a folder
    ],
)
def test_files_that_are_no_method_are_refused(loaded_files, tmp_path, file_name, text, message):
    before, file = dict(positions.METHODS), tmp_path / file_name
    if text:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        positions.load_file(file)
    assert f"Received: path={str(file)!r}" in str(caught.value)
    assert before == positions.METHODS


def test_the_registry_is_the_files_of_the_folder():
    folder = pathlib.Path(positions.__file__).parent
    assert {file.stem for file in folder.glob("[!_]*.py")} == set(positions.METHODS)
    assert {"none", "absolute", "tupe_r", "tupe_r_tied_cls", "bert_ad"} <= set(positions.METHODS)
    for name in METHOD_NAMES:
        record.check_functions(Case(name))
        with pytest.raises(dataclasses.FrozenInstanceError):
            positions.get(name).summary = "another"
    with pytest.raises(TypeError, match="'logits_oracle' and 'equation'"):
        positions.PositionMethod(summary="no equation", source="nowhere")


def bias_of_words(dims, options):
    return keras.layers.Lambda(lambda x: keras.ops.sum(x), output_shape=(), name="position_bias")


ARGUMENTS = r", weights, dims, options\)\. Received: "


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("equation", " ", r"in LaTeX(.|\n)*Received: equation="),
        ("equation", None, "`equation` must be"),
        ("where", {"d": 3}, "`where` must be a dictionary of texts"),
        ("where", "d", "`where` must be a dictionary of texts"),
        ("option_meanings", {"k": "a text"}, r"names of options alone, a subset of \[\]"),
        ("other_options", ({"cls": "untied"},), r"subset of \[\](.|\n)*Received: other_options="),
        ("other_options", ("cls",), "`other_options` must have names of options"),
        ("relative_step_time", (1.0, -1.0), "a pair of positive numbers"),
        ("relative_step_time", 1.0, "a pair of positive numbers(.|\n)*Received"),
        ("logits_oracle", tuple, rf"\(tokens{ARGUMENTS}a function of"),
        ("scores_oracle", "softmax", rf"\(logits{ARGUMENTS}'softmax'"),
        ("embed", lambda: (), r"`embed` .* of \(dims, options\)\. Received: a function of \(\)"),
        ("bias", lambda one: (), r"`bias` .* Received: a function of \(one\)"),
        ("shared", 3, r"`shared` .* Received: 3"),
        ("attention", None, r"`attention` .* Received: None"),
        ("dead_weights", lambda options: (), r"`dead_weights` .* Received: a function of"),
        ("has_length_limit", lambda: True, r"`has_length_limit` .* of \(options\)"),
        ("bias", bias_of_words, "`bias` must be made of the length alone"),
    ],
)
def test_a_record_with_a_mistake_is_not_complete(field, value, message, monkeypatch):
    changed = dataclasses.replace(positions.get("none"), **{field: value})
    monkeypatch.setitem(positions.METHODS, "none", changed)
    with pytest.raises(BrokenPromiseError, match=message):
        record.check_record(Case("none"))


def test_functions_of_a_record_may_have_more_optional_arguments_or_be_classes(monkeypatch):
    class Attention:
        def __init__(self, dims, options, more=None):
            pass

    changes = {"dead_weights": lambda *arguments: (), "attention": Attention, "bias": None}
    changed = dataclasses.replace(positions.get("none"), **changes)
    monkeypatch.setitem(positions.METHODS, "none", changed)
    record.check_record(Case("none"))


@pytest.mark.parametrize("shape", [(1, 2, 7), (1, 3, 7, 7), (2, 7, 7), (1, 1, 1, 7)])
def test_a_method_whose_bias_has_a_wrong_shape_is_refused_at_the_door(monkeypatch, shape):
    class WrongBias(keras.layers.Layer):
        def call(self, hidden_states):
            length = keras.ops.shape(hidden_states)[1]
            return keras.ops.zeros([length if size == 7 else size for size in shape])

    def bias(dims, options):
        return WrongBias(name="position_bias")

    monkeypatch.setitem(
        positions.METHODS, "none", dataclasses.replace(positions.get("none"), bias=bias)
    )
    message = r"`position_bias` must have the shape \(1 or batch, num_heads(.|\n)*Received:"
    with pytest.raises(ValueError, match=message):
        encoder(Case("none"))
