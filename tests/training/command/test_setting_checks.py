"""Paths that a command is given, looked at before anything is done."""

import os
import sys

import commands
import pytest

from training.command.checks import no_folder, not_there
from training.evaluate.tasks.blimp import Settings as Blimp
from training.finetune.tasks.glue import Settings as Glue
from training.finetune.tasks.squad import Settings as Squad
from training.prepare.folder import check_output
from training.pretrain.settings import Settings as Pretrain
from training.quickstart.settings import Settings as Quickstart

PROC = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_a_folder_that_is_there_or_can_be_made_is_right_and_nothing_stays(tmp_path):
    assert no_folder(tmp_path) == no_folder(tmp_path / "a" / "b") == []
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        (line,) = no_folder(path)
        assert line.startswith("--out must")
        assert str(path) in line


@PROC
@pytest.mark.parametrize(
    "settings",
    [
        lambda out: Pretrain(out=out),
        lambda out: Glue(out=out),
        lambda out: Squad(out=out),
        lambda out: Blimp(out=out),
        lambda out: Quickstart(out=out),
    ],
)
def test_an_out_that_cannot_be_made_names_the_option(settings):
    lines = [line for line in settings("/proc/x/run").problems() if "/proc/x/run" in line]
    assert len(lines) == 1
    assert lines[0].startswith("--out must name a folder that can be written. Received: ")


@PROC
def test_it_is_named_by_the_other_programs_too():
    with pytest.raises(ValueError, match="--out must name"):
        check_output("/proc/x", {})
    assert "draw: --out must name" in commands.refusal("draw", "--out", "/proc/x")


def test_a_file_where_a_folder_is_expected_is_not_called_nothing(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("x")
    for settings in (Pretrain(data=str(file)), Glue(data=str(file))):
        (line,) = [line for line in settings.problems() if line.startswith("--data")]
        assert line.endswith(f"Received: {str(file)!r}, which is a file")
    (line,) = [line for line in Squad(train=str(tmp_path)).problems() if "--train" in line]
    assert line.endswith("which is a folder")
    assert not_there(os.path.join(tmp_path, "no")).endswith("where there is none")
