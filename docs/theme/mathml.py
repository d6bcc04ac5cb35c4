"""Maths as MathML, made while the site is built: no script, no font, sharp at every size.

A Sphinx extension. A formula that cannot be converted is a warning, which ends the build.
"""

import functools
import html
import re

from docutils import nodes
from latex2mathml import converter
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
_UNKNOWN = re.compile(r"<m(?:i|o|text|n)[^>]*>\s*(\\[a-zA-Z]+)")


def setup(app):
    """Makes this the renderer of maths in HTML."""
    inline, block = (_inline, None), (_block, None)
    app.add_html_math_renderer("mathml", inline, block)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


@functools.cache
def mathml(latex, is_block):
    r"""Returns a formula as a `<math>` element.

    Args:
        latex: the formula, without dollars.
        is_block: whether it stands by itself.

    Raises:
        ValueError: if it cannot be converted, or has a command that the converter does not know.

    Example:
        >>> mathml(r"\frac{a}{b}", False).count("<mfrac>")
        1
    """
    try:
        found = converter.convert(latex, display="block" if is_block else "inline")
    except Exception as error:  # the converter has many of its own
        raise ValueError(f"{type(error).__name__} {error}".strip()) from error
    unknown = _UNKNOWN.search(found)
    if unknown:
        raise ValueError(f"{unknown[1]} is not known")
    return found


def _rendered(node, is_block):
    latex = node.astext().strip()
    try:
        return mathml(latex, is_block)
    except ValueError as error:
        _LOG.warning("a formula cannot be converted: %s. Received: %s", error, latex, location=node)
        return f"<code>{html.escape(latex)}</code>"


def _inline(translator, node):
    translator.body.append(_rendered(node, is_block=False))
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="math-block"))
    translator.body.append(_rendered(node, is_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode
