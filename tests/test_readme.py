"""What the README shows is true; its code is run with that of the other pages, in tests/docs."""

import pathlib
import re

from training import methods

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_the_method_table_in_the_readme_is_the_registry():
    assert methods.updated(README.read_text()) == README.read_text()


def test_the_pictures_in_the_readme_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README.read_text())
    assert pictures
    for picture in pictures:
        assert (README.parent / picture).is_file(), picture
