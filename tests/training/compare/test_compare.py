import json

import commands
import numpy as np
import pytest
from matplotlib.image import imread
from run_cases import cells, make_run

from training import compare


def make(folder, position, steps=300, shift=0.0, valid_every=20, rows="abc", **settings):
    make_run(folder, steps, shift, valid_every)
    settings = {"position": position, "seed": 0, "out": str(folder), **settings}
    record = {"settings": {**settings, "data": f"rows of {folder}"}, "data": {"rows_hash": rows}}
    (folder / "settings.json").write_text(json.dumps(record))
    return str(folder)


def refusal(*arguments):
    """Returns the sentence that a command line that must not run ends with."""
    return commands.refusal("compare", *arguments)


def test_runs_are_compared_in_a_table_and_a_picture(tmp_path):
    runs = [make(tmp_path / "a", "absolute", shift=0.5), make(tmp_path / "b", "tupe_r")]
    picture = tmp_path / "new" / "curves.png"
    printed = commands.done("compare", *runs, "--out", str(picture))
    header, absolute, tupe_r = cells(printed)
    assert header[:5] == ["run", "steps", "tokens", "held-out loss", "masked accuracy"]
    assert header[5:] == ["tokens/s", "of peak FLOP/s", "time"]
    loss = 3 + 6 * np.exp(-5)
    assert tupe_r[:4] == ["tupe_r", "300", "1,228,800", f"{loss:.3f}"]
    assert absolute[:4] == ["absolute", "300", "1,228,800", f"{loss + 0.5:.3f}"]
    assert tupe_r[5:] == ["1,000", "25%", "2 min"]
    assert "differ" not in printed
    assert min(imread(picture).shape[:2]) > 200
    assert [path.name for path in picture.parent.iterdir()] == ["curves.png"]


def test_runs_of_different_lengths_are_compared_after_the_same_tokens(tmp_path):
    runs = [make(tmp_path / "a", "absolute", 300), make(tmp_path / "b", "tupe_r", 150)]
    printed = commands.done("compare", *runs, "--out", str(tmp_path / "curves.png"))
    header, absolute, tupe_r = cells(printed)
    assert header[5] == "loss at 573,440 tokens"  # 140 steps, the last validation of the shorter
    assert tupe_r[5] == tupe_r[3] == f"{3 + 6 * np.exp(-140 / 60):.3f}"
    assert absolute[5] == tupe_r[5]
    assert absolute[3] == f"{3 + 6 * np.exp(-5):.3f}"


def test_no_number_is_made_up_for_a_place_before_the_first_validation(tmp_path):
    runs = [make(tmp_path / "a", "absolute", 300, valid_every=100)]
    runs.append(make(tmp_path / "b", "tupe_r", 40))
    header, absolute, _ = cells(commands.done("compare", *runs, "--out", tmp_path / "curves.png"))
    assert header[5] == "loss at 163,840 tokens"
    assert absolute[5] == "-"


@pytest.mark.parametrize(
    ("place", "value"), [(9, None), (10, 3.0), (15, 2.5), (20, 2.0), (20.1, None)]
)
def test_a_curve_is_read_between_its_ends_only(place, value):
    assert compare.value_at([10, 20], [3.0, 2.0], place) == value


def test_settings_that_differ_besides_the_method_are_named(tmp_path):
    runs = [
        make(tmp_path / "a", "t5", seed=1, steps_of="x", learning_rate=1e-3),
        make(
            tmp_path / "b",
            "tupe_r",
            rows="other",
            seed=2,
            steps_of="x",
            position_options='{"k": 3}',
        ),
    ]
    printed = commands.done("compare", *runs, "--out", str(tmp_path / "curves.png"))
    assert "The runs also differ in data, learning_rate, seed.\n" in printed


def test_runs_have_names_of_their_own():
    folders = ["runs/1", "runs/2", "runs/3", "runs/4"]
    settings = [
        {"position": "tupe_r"},
        {"position": "t5"},
        {"position": "tupe_r", "position_file": None},
        {"position": "tupe_r", "position_file": "mine/my_slope.py"},
    ]
    names = compare.labels(folders, settings)
    assert names == ["tupe_r (runs/1)", "t5", "tupe_r (runs/3)", "my_slope"]


def test_a_run_that_is_named_twice_is_one_run(tmp_path):
    run = make(tmp_path / "a", "t5")
    printed = commands.done("compare", run, run, "--out", str(tmp_path / "curves.png"))
    assert [row[0] for row in cells(printed)] == ["run", "t5"]


def test_what_cannot_be_compared_is_answered_with_a_sentence(tmp_path):
    good = make(tmp_path / "good", "t5")
    unvalidated = make(tmp_path / "unvalidated", "t5", valid_every=0)
    unlogged = tmp_path / "unlogged"
    unlogged.mkdir()
    (unlogged / "settings.json").write_text('{"settings": {"position": "t5"}, "data": {}}')
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "settings.json").write_text("[1]")
    picture = tmp_path / "curves.png"
    assert "no validation yet" in refusal(good, unvalidated, "--out", picture)
    assert "There must be a log.csv" in refusal(good, unlogged, "--out", picture)
    for folder in (broken, tmp_path / "nowhere", tmp_path):
        assert "must be a folder that training.pretrain made" in refusal(folder, "--out", picture)
    assert "--out must be a .png file" in refusal(good, "--out", tmp_path / "curves.pdf")
    assert not picture.exists()
