import pytest

from training.command.report_files import (
    names_of,
    replaced_file,
    replaced_picture,
    replaced_text,
)


def test_a_file_is_the_new_one_or_the_old_one(tmp_path):
    path = tmp_path / "report.md"
    replaced_text(path, "old")

    def fail_half_way(place):
        place.write_text("ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replaced_file(path, fail_half_way)
    assert path.read_text() == "old"
    replaced_text(path, "new")
    assert path.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["report.md"]


def test_a_picture_without_matplotlib_is_left_out_and_told_once(tmp_path, capsys):
    def draw(path):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib.figure")

    for _ in range(2):
        replaced_picture(tmp_path / "grid.png", draw)
    told = capsys.readouterr().err
    assert told == "No grid.png: matplotlib is not installed (pip install matplotlib).\n"
    replaced_text(tmp_path / "results.md", "text")
    assert names_of(tmp_path, "results.md", "grid.png") == f"{tmp_path}: results.md"


def test_another_missing_module_is_an_error(tmp_path):
    def draw(path):
        raise ModuleNotFoundError("No module named 'numpie'", name="numpie")

    with pytest.raises(ModuleNotFoundError, match="numpie"):
        replaced_picture(tmp_path / "grid.png", draw)
