import os
import shutil

import experiment_cases as cases
import pretrain_cases
import pytest
import squad_cases
from run_cases import cells

from training.studies.papers.definition import names
from training.studies.papers.settings import Settings
from training.study.__main__ import main

TUPE = ("tupe-table1", "--scale", "laptop")


def study(words):
    main(["papers", *map(str, words)])


def refused(arguments, capsys):
    """Returns what a command line that must not run prints."""
    with pytest.raises(SystemExit) as stop:
        study(arguments)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    return printed


def test_all_that_an_experiment_needs_is_asked_for_at_once(capsys):
    printed = refused(TUPE, capsys)
    for option in ("needs --data", "needs --glue", "--out must name"):
        assert option in printed
    printed = refused(("huang-graft",), capsys)
    for option in ("needs --preset", "needs --squad-train", "needs --squad-dev"):
        assert option in printed
    assert "--data" not in printed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("tupe-tabel1",), "the nearest is 'tupe-table1'"),
        ((), "NAME must name the experiment"),
        (("tupe-table1", "--scale", "labtop"), "the nearest is 'laptop'"),
        ((*TUPE, "--data", "nowhere"), "--data must be a folder made by training.prepare"),
        ((*TUPE, "--glue", "nowhere"), "--glue must be the folder of GLUE's official files"),
        ((*TUPE, "--squad-dev", __file__), "tupe-table1 does not use --squad-dev"),
        (("huang-graft", "--steps", "5"), "huang-graft does not pre-train: leave out --steps"),
        (("huang-lengths", "--tasks", "rte"), "does not fine-tune on GLUE: leave out --tasks"),
        ((*TUPE, "--tasks", "colla", "--glue", "."), "the nearest is 'cola'"),
        ((*TUPE, "--tasks", "rte", "rte"), "name each task once"),
        ((*TUPE, "--seeds", "0"), "--seeds must be an integer >= 1"),
        ((*TUPE, "--utilisation", "1.5"), "above 0 and at most 1"),
        ((*TUPE, "--strategy", "multiworker"), "--strategy must be one of"),
        ((*TUPE, "--sceds", "3"), "the nearest option is --seeds"),
        ((*TUPE, "--out", __file__), "--out must be a folder"),
    ],
)
def test_mistakes_in_the_command_line_are_answered_with_a_sentence(arguments, expected, capsys):
    assert expected in refused(arguments, capsys)


def test_tasks_without_files_are_named_before_anything_runs(tmp_path, capsys):
    (tmp_path / "CoLA").mkdir()
    (tmp_path / "CoLA" / "train.tsv").write_text("")
    printed = refused((*TUPE, "--glue", tmp_path), capsys)
    assert "official files of mrpc, rte, stsb, such as MRPC/train.tsv; --tasks cola asks" in printed
    assert "official" not in refused((*TUPE, "--glue", tmp_path, "--tasks", "cola"), capsys)
    assert "official" not in refused((*TUPE, "--glue", "tfds"), capsys)


def test_another_preset_is_another_experiment(tmp_path):
    preset = cases.make_preset(tmp_path / "preset")
    (preset / "model.weights.h5").write_bytes(b"1")
    settings = Settings(name="huang-graft", preset=str(preset))
    first = settings.identity()
    assert first == settings.identity()
    (preset / "model.weights.h5").write_bytes(b"2")
    assert first != settings.identity()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"position": "tupe_r"}, "method 'absolute', which is replaced"),
        ({"length": 64}, "--preset must take 128 tokens"),
        ({}, None),
    ],
)
def test_the_preset_of_a_graft_must_fit(change, expected, tmp_path, capsys):
    preset = cases.make_preset(tmp_path / "preset", **{"length": 128, **change})
    printed = refused(("huang-graft", "--preset", preset), capsys)
    if expected is None:
        assert "--preset" not in printed
    else:
        assert expected in printed
    (preset / "config.json").unlink()
    assert "with its config.json" in refused(("huang-graft", "--preset", preset), capsys)


def test_an_experiment_is_a_name_of_a_study(capsys):
    main(["--list"])
    printed = capsys.readouterr().out
    for name in names():
        assert f"\n  {name} " in printed
    for words in (TUPE, ("papers", *TUPE)):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2
        assert "tupe-table1 fine-tunes on GLUE and needs --glue" in capsys.readouterr().err


@pytest.mark.slow  # starts processes
def test_a_plan_is_printed_and_nothing_is_made(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main([*TUPE, "--plan", "--peak-flops", "1e12"])
    printed = capsys.readouterr().out
    assert "at 45% of 1 TFLOP/s" in printed
    assert (
        "1. python -m training.study ablation --positions absolute bert_r tupe_a tupe_r" in printed
    )
    assert {row[0] for row in cells(printed)} == {"work", "pre-training", "GLUE", "all"}
    assert os.listdir(tmp_path) == []


def squad_words(folder):
    """Returns options that name small files of SQuAD, which are written."""
    train = squad_cases.write_questions(folder / "train.json")
    dev = squad_cases.write_questions(folder / "dev.json", articles=2, seed=1)
    return ["--squad-train", str(train), "--squad-dev", str(dev), "--peak-flops", "1e12"]


@pytest.mark.slow  # pre-trains and fine-tunes in processes of their own
def test_an_experiment_runs_to_its_report_and_goes_on_where_it_was(tmp_path, capsys):
    path = cases.write(tmp_path, cases.lengths_text())
    rows = pretrain_cases.make_rows(tmp_path / "data")
    words = [str(path), "--data", str(rows), "--out", str(tmp_path / "out")]
    words += ["--steps", "6", "--seeds", "1", *squad_words(tmp_path)]
    study(words)
    assert "## Theirs: Nobody 1999, Table 7" in capsys.readouterr().out
    report = squad_cases.read(tmp_path / "out" / "study.json")
    scores = report["ours"]["scores"]["SQuAD F1"]["methods"]
    assert [len(one["values"]) for one in scores.values()] == [1, 1]
    assert report["ours"]["pretraining"]["steps"] == 6
    made = sorted((tmp_path / "out").rglob("metrics.json"))
    assert len(made) == 2 * 2  # lengths, seeds of fine-tuning
    times = [path.stat().st_mtime_ns for path in made]
    shutil.rmtree(made[-1].parents[1])  # a run, as if it had been stopped before the last command
    study(words)
    again = squad_cases.read(tmp_path / "out" / "study.json")
    assert again["ours"]["scores"] == report["ours"]["scores"]
    assert [path.stat().st_mtime_ns for path in made][:2] == times[:2]


@pytest.mark.slow  # fine-tunes in processes of their own
def test_a_graft_runs_to_its_report(tmp_path, capsys):
    path = cases.write(tmp_path, cases.graft_text())
    preset = squad_cases.save_preset(tmp_path / "preset", "absolute")
    words = [str(path), "--preset", str(preset), "--out", str(tmp_path / "out")]
    study([*words, *squad_words(tmp_path)])
    assert "runs of fine-tuning" in capsys.readouterr().out
    report = squad_cases.read(tmp_path / "out" / "study.json")
    scores = report["ours"]["scores"]["SQuAD EM"]["methods"]
    assert list(scores) == ["absolute, 24 tokens", "qkr_4:k=3, 24 tokens", "qkr_4:k=3, 32 tokens"]
    config = squad_cases.read(tmp_path / "out" / "grafted" / "preset" / "config.json")["config"]
    assert (config["position"], config["position_options"]["k"]) == ("qkr_4", 3)


@pytest.mark.slow  # starts processes
def test_a_command_that_fails_is_named(tmp_path, capsys):
    path = cases.write(tmp_path, cases.graft_text())
    preset = cases.make_preset(tmp_path / "preset")  # without weights
    words = [str(path), "--preset", str(preset), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stop:
        study([*words, *squad_words(tmp_path)])
    assert "Some runs failed" in stop.value.code
    assert "grafted" in stop.value.code
    assert "training.convert" in capsys.readouterr().err
