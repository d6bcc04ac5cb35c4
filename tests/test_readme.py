"""What the README shows is true; its code is run with that of the other pages, in tests/docs."""

import pathlib
import re

from docs import tables

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_committed_tables_are_the_registry_and_the_cards(tmp_path):
    for path, text in tables.texts().items():
        assert text == path.read_text(encoding="utf-8"), "run `python -m docs.tables`"


def test_the_pictures_in_the_readme_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README.read_text())
    assert pictures
    for picture in pictures:
        assert (README.parent / picture).is_file(), picture
