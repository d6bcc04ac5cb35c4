import math

import pytest

from training.command.log import LOG, LOG_COLUMNS, VALID, VALID_COLUMNS, RunLog, read_log


def train_row(step, **values):
    return {**dict.fromkeys(LOG_COLUMNS, 0.5), "step": step, "seconds": 2.0 * step, **values}


def valid_row(step):
    return {"step": step, "tokens": 4096 * step, "valid_loss": 1 / step, "valid_accuracy": 0.25}


def write(folder, start_step, steps, **settings):
    with RunLog(folder, start_step, **{"tensorboard": False, **settings}) as log:
        for step in steps:
            log.train(**train_row(step))
            if step % 4 == 0:
                log.valid(**valid_row(step))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_rows_are_read_as_they_were_written(tmp_path):
    with RunLog(tmp_path / "a" / "run", 0, tensorboard=False) as log:
        log.train(**train_row(12_345_678, loss=2.5, flop_utilisation=None, gradient_norm=math.inf))
        log.valid(**valid_row(3))
        columns = read_log(tmp_path / "a" / "run" / LOG)  # on disk at once
    assert list(columns) == list(LOG_COLUMNS)
    assert columns["step"] == [12_345_678]
    assert columns["loss"] == [2.5]
    assert columns["gradient_norm"] == [math.inf]
    assert math.isnan(columns["flop_utilisation"][0])
    assert read_log(tmp_path / "a" / "run" / VALID)["valid_loss"] == [pytest.approx(1 / 3)]


@pytest.mark.parametrize("start_step", [0, 4, 7])
def test_a_run_that_goes_on_has_the_log_of_one_that_never_stopped(start_step, tmp_path):
    write(tmp_path / "whole", 0, range(1, 13))
    write(tmp_path / "killed", 0, range(1, 10))
    with RunLog(tmp_path / "killed", start_step, tensorboard=False) as log:
        assert log.start_seconds == 2.0 * start_step  # so does the clock
    write(tmp_path / "killed", start_step, range(start_step + 1, 13))
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", [LOG, VALID])
def test_a_log_that_was_cut_anywhere_keeps_its_whole_rows(name, tmp_path):
    write(tmp_path, 0, range(1, 5))
    whole = (tmp_path / name).read_bytes()
    steps = read_log(tmp_path / name)["step"]
    header = whole.index(b"\n") + 1
    for size in range(header, len(whole)):
        (tmp_path / name).write_bytes(whole[:size])
        write(tmp_path, 8, [])
        rows = whole[:size].count(b"\n") - 1
        assert read_log(tmp_path / name)["step"] == steps[:rows]
        assert whole.startswith((tmp_path / name).read_bytes())


def test_rows_that_are_no_numbers_are_dropped(tmp_path):
    write(tmp_path, 0, range(1, 4))
    path = tmp_path / LOG
    good = path.read_bytes()
    path.write_bytes(good + b"\0\0\0\0,1\n" + b"4" + b",x" * 7 + b"\n" + b",1" * 7 + b"\n\xff\n")
    assert read_log(path)["step"] == [1, 2, 3]
    write(tmp_path, 9, [])
    assert path.read_bytes() == good


def test_logs_of_somebody_else_are_left_alone(tmp_path):
    (tmp_path / LOG).write_text("day,weight\n1,80\n")
    with pytest.raises(ValueError, match=r"must begin with the columns step,.*Received: .*log.csv"):
        RunLog(tmp_path, 0, tensorboard=False)
    assert (tmp_path / LOG).read_text() == "day,weight\n1,80\n"
    with pytest.raises(ValueError, match=r"There must be a log.csv or valid.csv of a run"):
        read_log(tmp_path / "run" / LOG)


def test_a_row_has_all_columns(tmp_path):
    with RunLog(tmp_path, 0, tensorboard=False) as log, pytest.raises(ValueError, match="columns"):
        log.valid(step=3, valid_loss=1.0)
    assert read_log(tmp_path / VALID)["step"] == []


def events(folder):
    """Returns (step, values by tag or None, whether a start is marked) of all event files."""
    import tensorflow as tf

    found = []
    for path in sorted(folder.iterdir()):
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            values = {value.tag: value.simple_value for value in event.summary.value}
            found.append((event.step, values, event.HasField("session_log")))
    return found


def test_tensorboard_gets_what_is_known_and_is_told_what_is_void(tmp_path):
    pytest.importorskip("tensorflow")
    write(tmp_path, 0, range(1, 6), tensorboard=True)
    with RunLog(tmp_path, 4) as log:
        log.train(**train_row(5, loss=0.25, flop_utilisation=None))
    found = events(tmp_path / "tensorboard")
    starts = [number for number, (_, _, is_start) in enumerate(found) if is_start]
    assert [found[number][0] for number in starts] == [1, 5]
    step, values, _ = found[-1]
    assert step == 5
    assert values.pop("train/loss") == 0.25
    assert set(values) == {f"train/{name}" for name in LOG_COLUMNS[2:]} - {"train/flop_utilisation"}
    of_valid = [values for step, values, _ in found if step == 4 and "valid/valid_loss" in values]
    assert [set(values) for values in of_valid] == [{f"valid/{name}" for name in VALID_COLUMNS[1:]}]
