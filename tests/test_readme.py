"""What the README shows is true."""

import pathlib
import re

import commands
import pytest

from training import methods

README = pathlib.Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def folder_with_rows(tmp_path_factory):
    """A folder with `saved_models`, in which `rows` has been prepared, as the README has it."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "saved_models").symlink_to(README.parent / "saved_models")
    sentences = [f"The {number} cats sat on mat {number * number}." for number in range(300)]
    (folder / "corpus.txt").write_text("\n\n".join(sentences), encoding="utf-8")
    words = ("--input", folder / "corpus.txt", "--out", folder / "rows", "--length", 24)
    commands.done("prepare", *words, "--vocabulary-size", 200)
    return folder


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
def test_python_in_the_readme_runs(code, folder_with_rows, monkeypatch):
    monkeypatch.chdir(folder_with_rows)
    exec(compile(code, str(README), "exec"), {})


def test_there_is_python_in_the_readme():
    assert "```python\n" in README.read_text()


def test_the_method_table_in_the_readme_is_the_registry():
    assert methods.updated(README.read_text()) == README.read_text()


def test_the_pictures_in_the_readme_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README.read_text())
    assert pictures
    for picture in pictures:
        assert (README.parent / picture).is_file(), picture
