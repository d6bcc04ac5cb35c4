"""Settings of Sphinx; `python -m docs` runs it."""

import os
import pathlib
import tomllib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

_PROJECT = tomllib.loads(
    (pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

project = "keras_tupe"
author = "the keras_tupe authors"
release = version = _PROJECT["version"]
copyright = author
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs.theme.mathml",
    "docs.theme.roles",
]
root_doc = "pages/index"
include_patterns = ["pages/**"]
source_suffix = {".md": "markdown"}
nitpicky = True

# Markdown
myst_enable_extensions = [
    "amsmath",
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Reference
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
nitpick_ignore_regex = [("py:.*", r"(?!keras_tupe).*")]  # names of other packages, in base classes

# HTML
html_theme = "furo"
html_title = f"keras_tupe {release}"
html_static_path = ["theme/static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_search_summary = False  # needs a server
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif",
        "font-stack--monospace": "ui-monospace, 'Cascadia Code', Menlo, Consolas, monospace",
    },
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
