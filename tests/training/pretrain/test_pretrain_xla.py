"""A resumed run compiles what the run compiled at its first step."""

import types

import keras
import pytest

from training.pretrain.xla_record import FILE, XlaRecord


def trainer(compiles, *seconds):
    return types.SimpleNamespace(compiles_passes=compiles, pass_seconds=seconds)


@pytest.fixture(autouse=True)
def on_cpus():
    if keras.backend.backend() != "tensorflow" or keras.distribution.list_devices("gpu"):
        pytest.skip("there is a choice on CPUs with TensorFlow alone")


@pytest.mark.parametrize("compiles", [True, False])
def test_what_was_measured_at_the_first_step_counts_from_then_on(tmp_path, compiles):
    record = XlaRecord(tmp_path, "auto")
    assert record.argument(0) == "auto"
    said = record.write(trainer(compiles, 0.2, 0.1 if compiles else 0.3))
    assert said == (
        "XLA compiles forward and backward pass: 100 ms compiled, 200 ms as they are"
        if compiles
        else "XLA does not compile forward and backward pass: 300 ms compiled, 200 ms as they are"
    )
    assert record.write(trainer(not compiles, 0.2, 0.2)) is None
    for step in (0, 7):
        assert XlaRecord(tmp_path, "auto").argument(step) is compiles


def test_a_run_that_was_too_short_to_measure_does_not_measure_when_it_goes_on(tmp_path):
    assert XlaRecord(tmp_path, "auto").write(trainer(False, 0.2)) is None
    assert XlaRecord(tmp_path, "auto").argument(7) is False


def test_a_run_of_an_earlier_version_goes_on_as_it_was(tmp_path):
    assert XlaRecord(tmp_path, "auto").argument(7) is False


@pytest.mark.parametrize(("choice", "argument"), [("on", True), ("off", False)])
def test_a_choice_on_the_command_line_is_not_recorded(tmp_path, choice, argument):
    record = XlaRecord(tmp_path, choice)
    record.write(trainer(argument))
    assert record.argument(7) is argument
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("text", ["", "[]", '{"compiles_passes": 1}', "\0"])
def test_a_damaged_record_is_refused_with_what_to_do(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=r"--xla on or --xla off. Received: .*xla.json"):
        XlaRecord(tmp_path, "auto").argument(7)
