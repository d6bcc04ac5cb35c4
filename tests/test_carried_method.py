"""A preset carries the file of a method outside the package, and never runs it by itself."""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from position_cases import Case, encoder, inputs, outputs, random_ids

from keras_tupe import TupeBackbone, positions
from training.presets.load import load_preset

TESTS = pathlib.Path(__file__).parent


@pytest.fixture
def preset(linear_slope, tmp_path):
    """Preset of an encoder with the method, its inputs and answers; then the method is unknown."""
    model = encoder(Case(linear_slope, (("slope", 0.3),)), "float32", num_layers=1)
    given = inputs(random_ids(2, 7))
    model.save_to_preset(str(tmp_path / "preset"))
    answers = outputs(model, given)
    positions.REGISTRY.forget(linear_slope)
    np.savez(tmp_path / "answers.npz", ids=given["token_ids"], sequence=answers[0])
    return tmp_path / "preset"


def test_it_holds_the_source_and_its_hash(preset):
    file = preset / "linear_slope.py"
    source = (TESTS.parent / "examples" / file.name).read_bytes()
    assert file.read_bytes() == source
    record = json.loads((preset / "position_file.json").read_text(encoding="utf-8"))
    assert record == {"file": file.name, "sha256": hashlib.sha256(source).hexdigest()}


def test_a_preset_of_the_packages_own_method_carries_none(tmp_path):
    folder = tmp_path / "preset"
    folder.mkdir()
    (folder / "position_file.json").write_text("{}", encoding="utf-8")  # of another method
    encoder(Case("none"), "float32", num_layers=1).save_to_preset(str(folder))
    assert not (folder / "position_file.json").exists()
    assert list(folder.rglob("*.py")) == []


@pytest.mark.parametrize("load", [TupeBackbone.from_preset, load_preset])
def test_it_is_not_run_unasked_and_the_error_says_how_to_load_it(preset, load):
    file = preset / "linear_slope.py"
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(ValueError, match="not run unless you ask for it") as caught:
        load(str(preset))
    text = str(caught.value)
    assert f"--position-file {file} on the command line" in text
    assert f"`keras_tupe.positions.load_file({str(file)!r})` in Python" in text
    assert f"Its SHA-256 is {sha256}." in text
    assert "Received:" in text
    assert "linear_slope" not in positions.METHODS


def test_it_is_loaded_by_the_preset_or_by_its_file(preset):
    assert positions.load_file(preset) == "linear_slope"
    assert positions.load_file(preset / "linear_slope.py") == "linear_slope"
    with np.load(preset.parent / "answers.npz") as known:
        model = TupeBackbone.from_preset(str(preset))
        np.testing.assert_array_equal(outputs(model, inputs(known["ids"]))[0], known["sequence"])
    assert model.position_options == {"slope": 0.3}


@pytest.mark.slow
def test_another_process_loads_it_by_name(preset):
    script = (
        "import numpy as np, keras_tupe\n"
        f"keras_tupe.positions.load_file({str(preset / 'linear_slope.py')!r})\n"
        f"model = keras_tupe.TupeBackbone.from_preset({str(preset)!r})\n"
        f"known = np.load({str(preset.parent / 'answers.npz')!r})\n"
        "ids = known['ids']\n"
        "given = {'token_ids': ids, 'padding_mask': np.ones_like(ids)}\n"
        "got = np.array(model(given)['sequence_output'])\n"
        "np.testing.assert_array_equal(got, known['sequence'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=TESTS.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_changed_file_is_refused(preset):
    file = preset / "linear_slope.py"
    file.write_text(file.read_text(encoding="utf-8") + "\nprint('run')\n", encoding="utf-8")
    for path in (preset, file):
        with pytest.raises(ValueError, match=r"changed after the preset was saved(.|\n)*Received:"):
            positions.load_file(path)
    assert "linear_slope" not in positions.METHODS
    copy = shutil.copy(file, preset.parent)
    assert positions.load_file(copy) == "linear_slope"


def test_a_file_of_an_older_version_says_what_it_lacks_and_where_to_add_it(preset):
    file = preset / "linear_slope.py"
    whole = file.read_text(encoding="utf-8")
    lines = [line for line in whole.splitlines(keepends=True) if "equation=" not in line]
    old = "".join(lines).encode()
    file.write_bytes(old)
    record = {"file": file.name, "sha256": hashlib.sha256(old).hexdigest()}
    (preset / "position_file.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match="required positional argument: 'equation'") as caught:
        positions.load_file(preset)
    assert "change a copy of it in another folder, and load that before the preset" in str(
        caught.value
    )
    copy = preset.parent / file.name
    copy.write_bytes(old)
    with pytest.raises(ValueError, match="argument: 'equation'") as caught:
        positions.load_file(copy)
    assert "a copy of it" not in str(caught.value)
    copy.write_text(whole, encoding="utf-8")
    assert positions.load_file(copy) == "linear_slope"
    assert TupeBackbone.from_preset(str(preset)).position == "linear_slope"


@pytest.mark.parametrize(
    "record", [{"file": "../linear_slope.py", "sha256": "0"}, {"file": "a.py"}, {"file": 3}]
)
def test_a_damaged_record_is_refused(preset, record):
    (preset / "position_file.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match="must hold the name of a file beside it(.|\n)*Received"):
        positions.load_file(preset)


def test_the_same_file_at_another_place_is_the_same_method(preset):
    positions.load_file(preset)
    method = positions.get("linear_slope")
    assert positions.load_file(TESTS.parent / "examples" / "linear_slope.py") == "linear_slope"
    assert positions.get("linear_slope") is method


def test_a_preset_made_of_a_loaded_one_carries_it_on(preset, tmp_path):
    positions.load_file(preset)
    TupeBackbone.from_preset(str(preset)).save_to_preset(str(tmp_path / "second"))
    second = tmp_path / "second" / "linear_slope.py"
    assert second.read_bytes() == (preset / second.name).read_bytes()
