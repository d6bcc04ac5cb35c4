"""Files of a report are whole or not there; tables stand between their comments; times in words."""

import pytest

from training.command.report import (
    END,
    begin,
    duration,
    names_of,
    replaced,
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


@pytest.mark.parametrize("missing", ["matplotlib.figure", "numpie"])
def test_only_a_picture_without_matplotlib_is_left_out_and_told_once(missing, tmp_path, capsys):
    def draw(path):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    for _ in range(2):
        if missing == "numpie":
            with pytest.raises(ModuleNotFoundError, match="numpie"):
                replaced_picture(tmp_path / "bars.png", draw)
        else:
            replaced_picture(tmp_path / "grid.png", draw)
    told = "No grid.png: matplotlib is not installed (pip install matplotlib).\n"
    assert capsys.readouterr().err == ("" if missing == "numpie" else told)
    replaced_text(tmp_path / "results.md", "text")
    assert names_of(tmp_path, "results.md", "grid.png") == f"{tmp_path}: results.md"


def test_a_table_is_put_between_its_comments_only():
    first = begin("docs.tables")
    text = f"before\n{first}\nold\n{END}\nafter\n"
    new = replaced(text, "docs.tables", "| new |")
    assert new == f"before\n{first}\n| new |\n{END}\nafter\n"
    with pytest.raises(ValueError, match="must have the line"):
        replaced("no comments", "docs.tables", "| new |")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0 s"), (89, "89 s"), (91, "2 min"), (3540, "59 min"), (5025, "1 h 24 min")],
)
def test_times_are_told_in_words(seconds, expected):
    assert duration(seconds) == expected
