"""The table of what a trunk is made of, in the guide on pre-training."""

import dataclasses
import pathlib

from docs.generate import docstrings
from docs.generate.fill import fill
from keras_tupe.trunk.config import TrunkConfig
from training.command.report import table
from training.command.settings import option

ROOT = pathlib.Path(__file__).parents[2]
PAGE = "guides/pretraining.md"


def pages():
    """Returns the page: a dictionary of path below `pages/` -> text."""
    text = (ROOT / "docs/pages" / PAGE).read_text(encoding="utf-8")
    return {PAGE: fill(text, {"trunk": fields()}, PAGE)}


def fields():
    """Returns the table of the fields of a `TrunkConfig`."""
    rows = [
        [
            f"`{field.name}`",
            f"`{option(field.name)}`" if field.metadata["ask"] else "-",
            "-" if field.default is dataclasses.MISSING else f"`{field.default!r}`",
            docstrings.inline(field.metadata["help"], lambda code: f"`{code}`"),
        ]
        for field in dataclasses.fields(TrunkConfig)
    ]
    return table(["argument", "option", "default", "what it is"], rows)
