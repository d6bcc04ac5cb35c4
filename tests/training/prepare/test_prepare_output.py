"""Where the rows go: never over what somebody else has put there."""

import os

import commands
import prepare_cases as cases
import pytest
from prepare_cases import documents, failure, record, run

from training.prepare import folder as prepare_folder

GOOD = documents(number=61)


def test_the_output_of_another_command_is_left_alone(options, tmp_path):
    source = cases.write_text(tmp_path / "corpus.txt", GOOD)
    folder = run(tmp_path / "rows", source, options=options)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    message = failure(folder, source, options=options, more=["--length", 31, "--skip-bad"])
    assert message.startswith("prepare: The folder was begun by a command with other settings.")
    assert message.endswith("differs in: length: 29 -> 31; skip_bad: False -> True")
    os.utime(source, ns=(7, 7))
    message = failure(folder, source, options=options)
    assert message.endswith("differs in: the input files (or their times of change)")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "rows"]


@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
def test_a_foreign_output_is_left_alone(kind, options, tmp_path):
    source = cases.write_text(tmp_path / "corpus.txt", GOOD)
    out = tmp_path / "rows"
    if kind == "file":
        out.write_text("mine")
    elif kind == "folder":
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    else:
        out.symlink_to(tmp_path / "elsewhere" / "rows")
        run(out, source, options=options)
        assert record(out)["length"] == 29
        return
    message = failure(out, source, options=options)
    assert message.startswith("prepare: The output folder exists and has no good preparation.json")
    assert (out if kind == "file" else out / "mine.txt").read_text() == "mine"


def test_an_empty_folder_is_filled_also_from_inputs_one_by_one(options, tmp_path):
    first, second = (
        cases.write_text(tmp_path / f"{name}.txt", half)
        for name, half in (("a", GOOD[:31]), ("b", GOOD[31:]))
    )
    (tmp_path / "rows").mkdir()
    found = record(run(tmp_path / "rows", first, options=options, more=["--input", second]))
    assert found["length"] == 29
    assert sum(part["documents"] for part in found["splits"].values()) == len(GOOD)


def test_the_output_must_not_lie_inside_of_an_input(tmp_path):
    cases.write_text(tmp_path / "corpus.txt", GOOD)
    for out in (tmp_path, tmp_path / "rows", tmp_path / "more" / "rows"):
        told = commands.refusal("prepare", "--input", tmp_path, "--out", out, code=2)
        (line,) = told.splitlines()
        assert line.endswith(f"Received: out={str(out)!r}, input={str(tmp_path)!r}")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


@pytest.mark.parametrize("place", ["file/rows", "rows" * 99, "work"])
def test_an_output_that_cannot_be_made_is_told(place, options, tmp_path):
    source = cases.write_text(tmp_path / "corpus.txt", GOOD)
    (tmp_path / "file").touch()
    (tmp_path / "work.unfinished").touch()
    assert str(tmp_path) in failure(tmp_path / place, source, options=options)


@pytest.mark.parametrize("out_exists", [False, True])
def test_the_finished_folder_gets_its_name_in_one_step(out_exists, tmp_path):
    folder, out = tmp_path / "work" / "dataset", tmp_path / "rows"
    folder.mkdir(parents=True)
    (folder / "a").write_text("a")
    if out_exists:
        out.mkdir()
    number = folder.stat().st_ino
    prepare_folder.move_into_place(folder, out)
    assert out.stat().st_ino == number  # renamed: a copy could be cut short
    assert [path.name for path in out.iterdir()] == ["a"]
    assert not folder.exists()
