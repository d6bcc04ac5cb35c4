"""LiteRT files, run by LiteRT's interpreter alone."""

import sys

import numpy as np
import pytest
from portable_cases import (
    TRUNKS,
    VARIANTS,
    check_in_another_process,
    load_method_with_an_unknown_op,
    model_of,
    out_of_range,
    rows_of_ones,
)
from position_cases import MAX_LENGTH, METHOD_NAMES, encoder

from keras_tupe.export import export_litert
from keras_tupe.export.portable import difference
from keras_tupe.export.portable.file import write_portable
from keras_tupe.export.portable.litert import run_litert

pytest.importorskip("ai_edge_litert", reason="pip install 'keras-tupe[portable]'")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A masked language model, its file, and the record of the export."""
    model = model_of("tupe_r", "masked_lm", num_segments=2, num_layers=1)
    path = tmp_path_factory.mktemp("litert") / "new folder" / "tupe_r.tflite"
    return model, path, export_litert(model, path)


def test_masked_lm_answers_as_in_keras_in_another_process(written):
    model, path, record = written
    check_in_another_process(path, "litert", model)
    assert record.path == path
    assert record.bytes == path.stat().st_size
    assert 0 < record.worst.value <= 1e-4


def test_ids_and_positions_out_of_their_range_are_errors_that_are_told_once(written):
    model, path, _ = written
    run = run_litert(path.read_bytes())
    for name, value in out_of_range(model, length=5):
        with pytest.raises(RuntimeError, match="gather index out of bounds"):
            run(rows_of_ones(2, 5, **{name: value}))
    with pytest.raises(RuntimeError, match="RESHAPE") as error:
        run(rows_of_ones(2, MAX_LENGTH + 1))
    assert "gather" not in str(error.value)
    assert np.isfinite(run(rows_of_ones(2, 5))["mlm_logits"]).all()
    assert run(rows_of_ones(0, 2))["mlm_logits"].shape == (0, 2, 23)


def test_classifier_without_segments_or_length_limit_answers_as_in_keras(tmp_path):
    model = model_of("alibi", "classifier", num_layers=1)
    export_litert(model, tmp_path / "alibi.tflite")
    check_in_another_process(tmp_path / "alibi.tflite", "litert", model)


def test_kernels_without_a_delegate_run_it_and_refuse_longer_sequences(written):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=str(written[1]), experimental_op_resolver_type=kernels)
    runner = interpreter.get_signature_runner("serving_default")
    shapes = dict.fromkeys(runner.get_input_details(), (2, 5))
    outputs = runner(**{name: np.ones(shape, "int32") for name, shape in shapes.items()})
    assert np.isfinite(outputs["mlm_logits"]).all()
    assert outputs["mlm_logits"].shape == (2, 5, 23)
    shapes |= dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), (2, MAX_LENGTH + 1))
    with pytest.raises(RuntimeError, match="RESHAPE"):
        runner(**{name: np.ones(shape, "int32") for name, shape in shapes.items()})


def test_a_file_that_differs_in_one_weight_is_not_written(written, tmp_path):
    model, path, _ = written
    (variable,) = [x for x in model.weights if x.path.endswith("mlm_head/dense/bias")]
    before = variable.numpy()
    variable.assign(before + 0.02 * np.arange(before.size))
    content = path.read_bytes()
    try:
        with pytest.raises(RuntimeError, match=r"Received: \d.* in mlm_logits at length=\d+"):
            write_portable(
                model, tmp_path / "x.tflite", ".tflite", lambda model: content, run_litert
            )
    finally:
        variable.assign(before)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_is_refused_before_any_work(tmp_path):
    (tmp_path / "there.tflite").write_text("mine", encoding="utf-8")
    for name, message in (("model.onnx", "must end with .tflite"), ("there.tflite", "exists")):
        with pytest.raises(ValueError, match=rf"{message}.*Received: path="):
            export_litert(model_of("none"), tmp_path / name)
    assert [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()] == ["mine"]


def test_a_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(ImportError, match=r"'keras-tupe\[portable\]'.*Received: .*ai_edge_litert"):
        export_litert(model_of("none"), tmp_path / "model.tflite")


@pytest.mark.slow
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_answers_as_in_keras(name, tmp_path):
    model = model_of(name, "masked_lm")
    export_litert(model, tmp_path / "model.tflite")
    check_in_another_process(tmp_path / "model.tflite", "litert", model)


@pytest.mark.slow
@pytest.mark.parametrize("case", VARIANTS, ids=str)
def test_every_option_that_makes_another_graph_answers_as_in_keras(case):
    record = difference(encoder(case, "float32"), "litert", lengths=(1, 7, MAX_LENGTH))
    assert record.worst.value < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("trunk", TRUNKS, ids=str)
def test_every_trunk_and_precision_answers_as_in_float32(trunk):
    record = difference(
        model_of("tupe_r", "classifier", **trunk), "litert", lengths=(1, 7, MAX_LENGTH)
    )
    assert record.worst.value < 1e-4


@pytest.mark.slow
def test_an_op_that_litert_does_not_have_is_an_error_that_names_it(tmp_path, loaded_files):
    name = load_method_with_an_unknown_op(tmp_path)
    with pytest.raises(RuntimeError, match=r"no equivalent in LiteRT.*Received: .*Erfinv"):
        export_litert(model_of(name), tmp_path / "model.tflite")
    assert not (tmp_path / "model.tflite").exists()
