"""What the README shows is true."""

import pathlib
import re

import pytest

from training import methods

README = pathlib.Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
def test_python_in_the_readme_runs(code):
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
