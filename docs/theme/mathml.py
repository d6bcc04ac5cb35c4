"""Maths as MathML, made while the site is built: no script, no font, sharp at every size.

A Sphinx extension. A formula that cannot be converted is a warning, which ends the build.
"""

import functools
import html
import re
import xml.etree.ElementTree as ET

from docutils import nodes
from latex2mathml import converter
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
_FENCES = frozenset("()[]{}|\u2016\u2223\u230a\u230b\u2308\u2309\u27e8\u27e9")
_NUMBER_OF_PARTS = {
    **dict.fromkeys(("mfrac", "msub", "msup", "mover", "munder", "mroot"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
# Environments that the converter numbers, or does not know, under the name of one that it draws.
_SAME = {"align": "align*", "aligned": "split", "equation*": "equation"}
_DRAWN = {"align*", "array", "cases", "equation", "split"}
_DRAWN |= {f"{kind}matrix" for kind in ("", "b", "B", "p", "v", "V", "small")}
_STYLES = {"bold": "font-weight: bold", "bold-italic": "font-weight: bold; font-style: italic"}
_TALL = 1.8  # from this number of lines on a fence grows with what it encloses
_AXIS = 0.27  # of a line: how far above the base line fractions and fences have their middle


def setup(app):
    """Makes this the renderer of maths in HTML."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
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
    latex = re.sub(r"\\(begin|end)\{(.*?)\}", _renamed, latex.strip())
    if re.search(r"\\\\|(?<!\\)&", latex) and r"\begin" not in latex:
        latex = rf"\begin{{split}}{latex}\end{{split}}"
    try:
        text = converter.convert(latex, display="block" if is_block else "inline")
        tree = ET.fromstring(text)
    except Exception as error:  # the converter has a dozen of its own, below no common one
        raise ValueError(f"{type(error).__name__} {error}".strip()) from error
    _check(tree)
    _adapt(tree)
    ET.register_namespace("", "http://www.w3.org/1998/Math/MathML")
    return ET.tostring(tree, encoding="unicode")


def _renamed(found):
    name = _SAME.get(found[2], found[2])
    if name not in _DRAWN:
        raise ValueError(f"the environment {found[2]} is not known")
    return rf"\{found[1]}{{{name}}}"


def _tag(element):
    return element.tag.rpartition("}")[2]


def _check(tree):
    """Raises a ValueError where the converter went on as if nothing were wrong."""
    for element in tree.iter():
        text, tag = element.text or "", _tag(element)
        if tag != "mtext" and (text.startswith("\\") or text == "&"):
            raise ValueError(f"{text} is not known here")
        if len(element) != _NUMBER_OF_PARTS.get(tag, len(element)):
            raise ValueError(f"a part of <{tag}> is missing")
        if element.get("linebreak") == "newline":
            raise ValueError(r"\\ breaks no line here; write it inside of \begin{aligned}")


def _adapt(element):
    """Says in CSS what browsers no longer take as attributes, and lets fences grow.

    Browsers stretch a fence only with a font made for maths, which most machines lack.
    """
    if element.get("mathvariant") in _STYLES:
        element.set("style", _STYLES[element.attrib.pop("mathvariant")])
    if element.get("columnalign"):
        element.set("style", f"text-align: {element.attrib.pop('columnalign')}")
    for child in element:
        _adapt(child)
    for index, child in enumerate(list(element)):
        if _tag(child) == "mo" and (child.text or "") in _FENCES and child.text:
            beside = element[max(index - 1, 0) : index + 2]
            is_of_all = child.get("form") in ("prefix", "postfix")  # \left, \right
            size = max(map(_height, element if is_of_all else beside))
            if size >= _TALL and (is_of_all or any(_tag(one) == "mtable" for one in beside)):
                element[index] = _grown(child, 0.9 * size)


def _height(element):
    """Returns about how many lines high an element is."""
    tag, parts = _tag(element), [_height(child) for child in element]
    if tag in ("mfrac", "mtable"):
        return 1.1 * sum(parts)
    return max([1.0, *parts]) + (0.6 if tag in ("munder", "mover", "munderover") else 0)


def _grown(fence, size):
    namespace = fence.tag.rpartition("}")[0] + "}"
    above, below = 0.48 * size + _AXIS, 0.48 * size - _AXIS
    shift = {"voffset": f"{_AXIS - _AXIS * size:.2f}em"}
    box = ET.Element(
        f"{namespace}mpadded", shift | {"height": f"{above:.2f}em", "depth": f"{below:.2f}em"}
    )
    ET.SubElement(
        box, fence.tag, {"stretchy": "false", "style": f"font-size: {size:.2f}em"}
    ).text = fence.text
    return box


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
    translator.body.append(_rendered(node, is_block=True) + "</div>\n")
    raise nodes.SkipNode
