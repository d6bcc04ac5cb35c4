import numpy as np
import pytest
from run_cases import cells, make_run, picture

from training.command.log import LOG, LOG_COLUMNS, VALID, VALID_COLUMNS, RunLog
from training.pretrain.report import Run, _smooth, draw_runs, load_run, totals, write_report


def pixels(path):
    """Returns a picture as integers `(height, width, 3)`, after a look that it is not blank."""
    image = picture(path)
    assert 0.5 < (image == 255).all(axis=-1).mean() < 0.99
    return image


def test_the_report_has_a_handful_of_points_the_last_one_and_totals(tmp_path):
    folder = make_run(tmp_path / "run")
    text = write_report(folder, "tupe_r")
    header, *rows = cells(text)
    assert header == ["step", "tokens", "held-out loss", "masked accuracy"]
    assert [row[0] for row in rows] == ["20", "80", "140", "180", "240", "300"]
    loss = 3 + 6 * np.exp(-5)
    assert rows[-1][1:] == ["1,228,800", f"{loss:.3f}", f"{1 / loss:.1%}"]
    assert text.endswith("\n\n2 min in all, 1,000 tokens/s, 25% of peak FLOP/s.")
    pixels(folder / "curves.png")
    assert {path.name for path in folder.iterdir()} == {LOG, VALID, "curves.png"}


def test_short_runs_have_a_report_too(tmp_path):
    rows = cells(write_report(make_run(tmp_path / "few", valid_every=150), "t5"))[1:]
    assert [row[0] for row in rows] == ["150", "300"]
    text = write_report(make_run(tmp_path / "none", valid_every=0), "t5")
    assert text.startswith("There was no validation.")
    picture(tmp_path / "none" / "curves.png")  # the training loss
    with RunLog(tmp_path / "begun", 0, tensorboard=False):
        pass
    text = write_report(tmp_path / "begun", "t5")
    assert text == "There was no validation.\n\n0 s in all."


def test_skipped_steps_are_told():
    empty = {name: [] for name in VALID_COLUMNS}
    log = {**{name: [np.nan, np.nan] for name in LOG_COLUMNS}, "seconds": [1.0, 7200.0]}
    run = Run("t5", {**log, "skipped_steps": [0.0, 3.0]}, empty)
    assert run.typical("tokens_per_second") is None
    assert totals(run) == "2 h 0 min in all, 3 steps skipped."


def test_every_run_has_its_color(tmp_path):
    runs = [
        load_run(make_run(tmp_path / name, shift=shift), name)
        for name, shift in (("absolute", 0.5), ("tupe_r", 0.0))
    ]
    shares = []
    for names in (runs[:1], runs):
        draw_runs(tmp_path / "picture.png", names)
        image = pixels(tmp_path / "picture.png")
        blue, orange = (
            (np.abs(image - color).max(axis=-1) < 8).sum()
            for color in ([0x1F, 0x77, 0xB4], [0xFF, 0x7F, 0x0E])
        )
        shares.append((blue > 500, orange > 500))
    assert shares == [(True, False), (True, True)]


def test_smoothing_keeps_the_ends_and_the_mean():
    values = np.linspace(5.0, 1.0, 400)
    steps, smooth = _smooth(np.arange(400), values + 0.3 * (-1.0) ** np.arange(400))
    assert len(steps) == len(smooth) == 400
    assert np.abs(smooth - values).max() < 0.1
    np.testing.assert_array_equal(_smooth([1, 2], [3.0, 4.0])[1], [3.0, 4.0])


def test_a_folder_without_logs_is_answered_with_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"There must be a log.csv or valid.csv of a run"):
        write_report(tmp_path, "t5")
    assert list(tmp_path.iterdir()) == []
