"""ONNX files, run by ONNX Runtime alone."""

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

from keras_tupe.export import export_onnx
from keras_tupe.export.portable import difference
from keras_tupe.export.portable.file import write_portable
from keras_tupe.export.portable.onnx import run_onnx

pytest.importorskip("tf2onnx", reason="pip install 'keras-tupe[portable]'")
pytest.importorskip("onnxruntime", reason="pip install 'keras-tupe[portable]'")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A masked language model, its file, and the record of the export."""
    model = model_of("tupe_r", "masked_lm", num_segments=2, num_layers=1)
    path = tmp_path_factory.mktemp("onnx") / "new folder" / "tupe_r.onnx"
    return model, path, export_onnx(model, path)


def test_masked_lm_answers_as_in_keras_in_another_process(written):
    model, path, record = written
    check_in_another_process(path, "onnx", model)
    assert record.path == path
    assert record.bytes == path.stat().st_size
    assert 0 < record.worst.value <= 1e-4
    assert "worst difference from Keras" in str(record)


def test_inputs_have_named_axes_and_the_metadata_name_method_and_limit(written):
    import onnxruntime

    session = onnxruntime.InferenceSession(written[1], providers=["CPUExecutionProvider"])
    axes = {x.name: x.shape for x in (*session.get_inputs(), *session.get_outputs())}
    assert axes.pop("masked_lm_positions") == ["batch", "predictions"]
    assert axes.pop("mlm_logits") == ["batch", "predictions", 23]
    assert axes.pop("sequence_output") == ["batch", "length", 10]
    assert axes.pop("pooled_output") == ["batch", 10]
    assert set(axes) == {"input_word_ids", "input_mask", "input_type_ids"}
    assert all(names == ["batch", "length"] for names in axes.values())
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["position"] == "tupe_r"
    assert facts["longest_sequence"] == str(MAX_LENGTH)


def test_ids_and_positions_out_of_their_range_are_errors(written):
    model, path, _ = written
    run = run_onnx(path.read_bytes())
    for name, value in out_of_range(model, length=5):
        with pytest.raises(Exception, match="(out of data bounds|invalid index)"):
            run(rows_of_ones(2, 5, **{name: value}))
    assert np.isfinite(run(rows_of_ones(2, 5))["mlm_logits"]).all()


def test_a_batch_may_be_empty(written):
    run = run_onnx(written[1].read_bytes())
    for length in range(1, MAX_LENGTH + 1):
        shapes = {name: value.shape for name, value in run(rows_of_ones(0, length)).items()}
        assert shapes["sequence_output"][:2] == (0, length)
        assert shapes["mlm_logits"][:2] == (0, 2)
        assert shapes["pooled_output"][0] == 0


def test_the_file_holds_every_weight_once_and_under_its_name(written):
    import onnx

    model, path, _ = written
    tensors = onnx.load(path).graph.initializer
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in tensors}
    for weight in model.weights:
        np.testing.assert_array_equal(held.pop(weight.path), weight.numpy())
    assert max(array.size for array in held.values()) < 40, "no copy of a weight"


def test_a_file_that_differs_in_one_weight_is_not_written(written, tmp_path):
    model, path, _ = written
    (variable,) = [x for x in model.weights if x.path.endswith("untied/cls_embeddings")]
    before = variable.numpy()
    variable.assign(before + 0.02 * np.arange(before.size).reshape(before.shape))
    content = path.read_bytes()
    try:
        with pytest.raises(RuntimeError, match=r"Received: \d.* in .*length=\d+, batch=[15]"):
            write_portable(model, tmp_path / "x.onnx", ".onnx", lambda model: content, run_onnx)
    finally:
        variable.assign(before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("model.onnx2", "must end with .onnx"), ("model", "must end with"), ("there.onnx", "exists")],
)
def test_a_path_that_cannot_be_is_refused_before_any_work(tmp_path, name, message):
    (tmp_path / "there.onnx").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{message}.*Received: path="):
        export_onnx(model_of("none"), tmp_path / name)
    assert [file.read_text(encoding="utf-8") for file in tmp_path.iterdir()] == ["mine"]


def test_something_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"`model` must be a `TupeBackbone`.*Received: model="):
        export_onnx(model_of("none").token_embedding, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["onnx", "tf2onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_what_to_install(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for import to fail
    with pytest.raises(ImportError, match=rf"'keras-tupe\[portable\]'.*Received: .*{package}"):
        export_onnx(model_of("none"), tmp_path / "model.onnx")


def test_the_difference_of_an_unknown_format_or_length_is_refused():
    with pytest.raises(ValueError, match=r"`format` must be one of.*Received: format='tflite'"):
        difference(model_of("none"), "tflite")
    with pytest.raises(ValueError, match="must not exceed the model's max_sequence_length=17"):
        difference(model_of("absolute"), "onnx", lengths=(1, 18))


@pytest.mark.slow
def test_classifier_without_segments_or_length_limit_answers_as_in_keras(tmp_path):
    model = model_of("t5", "classifier", num_layers=1)
    export_onnx(model, tmp_path / "t5.onnx")
    check_in_another_process(tmp_path / "t5.onnx", "onnx", model)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_answers_as_in_keras(name, tmp_path):
    model = model_of(name, "masked_lm")
    export_onnx(model, tmp_path / "model.onnx")
    check_in_another_process(tmp_path / "model.onnx", "onnx", model)


@pytest.mark.slow
@pytest.mark.parametrize("case", VARIANTS, ids=str)
def test_every_option_that_makes_another_graph_answers_as_in_keras(case):
    record = difference(encoder(case, "float32"), "onnx", lengths=(1, 7, MAX_LENGTH))
    assert record.worst.value < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("trunk", TRUNKS, ids=str)
def test_every_trunk_and_precision_answers_as_in_float32(trunk):
    record = difference(
        model_of("tupe_r", "classifier", **trunk), "onnx", lengths=(1, 7, MAX_LENGTH)
    )
    assert record.worst.value < 1e-4


@pytest.mark.slow
def test_an_op_that_onnx_does_not_have_is_an_error_that_names_it(tmp_path, loaded_files):
    name = load_method_with_an_unknown_op(tmp_path)
    with pytest.raises(RuntimeError, match=r"no equivalent in ONNX\. Received: .*Erfinv"):
        export_onnx(model_of(name), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
