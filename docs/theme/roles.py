"""The role `source`, which names a file of the repository: a Sphinx extension.

    {source}`keras_tupe/layers/cls_reset.py`

shows the path, as a link where the project has an address. A file that is not there is a warning.
"""

import pathlib
import tomllib

from docutils import nodes
from sphinx.util import logging

ROOT = pathlib.Path(__file__).parents[2]
_LOG = logging.getLogger(__name__)


def setup(app):
    """Adds the role."""
    app.add_role("source", _source)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def address():
    """Returns the project's address of `pyproject.toml`, or `None`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository")


def _source(name, rawtext, text, lineno, inliner, options=None, content=()):
    if not (ROOT / text).exists():
        place = (inliner.document.current_source, lineno)
        _LOG.warning("there is no such file in the repository. Received: %r", text, location=place)
    shown, url = nodes.literal(text, text, classes=["source"]), address()
    if url:
        target = f"{url}/blob/main/{text}"
        return [nodes.reference(rawtext, "", shown, refuri=target)], []
    return [shown], []
