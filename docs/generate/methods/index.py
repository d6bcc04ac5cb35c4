"""All pages of methods, and the parts of `methods/index.md` that list them."""

import pathlib

from docs.generate.fill import fill
from docs.generate.methods import layers
from docs.generate.methods.method_page import page
from docs.generate.methods.options import all_options
from docs.generate.methods.parameters import parameters
from docs.tables import length
from keras_tupe import positions
from training.command.report import table

ROOT = pathlib.Path(__file__).parents[3]
# Where a method acts, and the sentence about it; the order is that of the table.
PLACES = {
    "embed": "Added to the embeddings",
    "bias": "A bias of the logits, made once per forward pass",
    "attention": "Attention of its own, in every block",
    "none": "No positions",
}


def pages():
    """Returns the pages: a dictionary of path below `pages/` -> Markdown."""
    methods = dict(sorted(positions.METHODS.items()))
    found = {f"methods/{name}.md": page(name, method) for name, method in methods.items()}
    index = ROOT / "docs" / "pages" / "methods" / "index.md"
    found["methods/index.md"] = filled(index.read_text(encoding="utf-8"), methods)
    return found


def filled(text, methods):
    """Returns the index with its generated parts in place of their comments.

    Args:
        text: Markdown with the comments `<!-- generated: table -->`, `<!-- generated: options -->`
            and `<!-- generated: parameters -->`.
        methods: dictionary of name -> `PositionMethod`.

    Raises:
        ValueError: if a comment is not there once.
    """
    parts = {"table": all_methods(methods), "options": all_options(methods)}
    parts["parameters"] = parameters()
    return fill(text, parts, "methods/index.md")


def place_of(method):
    """Returns the first place of `PLACES` where a method acts."""
    if method.embed or method.bias:
        return "embed" if method.embed else "bias"
    return "attention" if layers.has_own_attention(method) else "none"


def all_methods(methods):
    """Returns a table of the methods for each place where they act."""
    parts = []
    for place, title in PLACES.items():
        rows = [
            [f"[`{name}`]({name}.md)", method.summary, length(method), method.source]
            for name, method in methods.items()
            if place_of(method) == place
        ]
        if rows:
            parts += [f"### {title}", table(["method", "what it is", "length", "source"], rows)]
    return "\n\n".join(parts)
