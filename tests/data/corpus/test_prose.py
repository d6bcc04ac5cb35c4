"""What is left of a docstring, rule by rule."""

import pytest

from keras_tupe.data.corpus.prose import prose_paragraphs

GOOD = "This sentence is plain English and it is kept as it is."
ALSO_GOOD = "Here is another one that a reader would call prose."


def test_paragraphs_are_joined_and_dedented():
    text = """This sentence is plain English
        and it is kept   as it is.

        Here is another one that a
        reader would call prose.
        """
    assert prose_paragraphs(text) == [GOOD, ALSO_GOOD]


@pytest.mark.parametrize(
    "dropped",
    [
        "```python\nThis is the code of a program that is not in English.\n```",
        ">>> this is the input of an example in a test\nand this is the output of it",
        "Example::\n\n    this is the code of a literal block and not a text\n",
        ".. code-block:: python\n\n    this is the code of a program and not a text\n",
        "| this is the first | and this is the second cell | of a table |",
        "This Is the Title of a Section and Not a Text\n---------------------------------------",
        "Arguments:",
        "x : the type of an argument that is not to be kept",
        "y = f(x[0], axis=-1) + g_1(z) ** 2 // the_other_name(a, b)",
        "Too short to keep.",
        "zeros ones full empty arange linspace logspace geomspace",
    ],
)
def test_what_is_not_prose_is_dropped(dropped):
    assert prose_paragraphs(f"{GOOD}\n\n{dropped}\n\n{ALSO_GOOD}") == [GOOD, ALSO_GOOD]


@pytest.mark.parametrize(
    "item",
    [
        "- {}",
        "* {}",
        "1. {}",
        ":param name: {}",
        ":returns: {}",
        "  name: {}",
        "  name (int, optional): {}",
    ],
)
def test_list_items_and_entries_lose_their_marks(item):
    text = f"{GOOD}\n\nArgs:\n{item.format(ALSO_GOOD)}\n{item.format(GOOD)}"
    assert prose_paragraphs(text) == [GOOD, ALSO_GOOD, GOOD]


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("the ``name`` of `this` thing", "the name of this thing"),
        ("the **bold** and *slanted* words", "the bold and slanted words"),
        ("the :class:`~package.module.Name` class here", "the Name class here"),
        ("the :func:`run <package.run>` function here", "the run function here"),
        ("the [text](https://example.com/a_b) of a link", "the text of a link"),
        ("the `text <https://example.com>`_ of a link", "the text of a link"),
        ("at https://example.com/a.html, or here", "at , or here"),
        ("as in the paper [1]_ of the authors", "as in the paper of the authors"),
        ("a value of `int32`. And the next", "a value of int32. And the next"),
        ("pass `*args` and `__init__` to it", "pass args and __init__ to it"),
    ],
)
def test_inline_markup_is_removed(markup, plain):
    assert prose_paragraphs(f"This is {markup}.") == [f"This is {plain}."]


def test_text_goes_on_after_code():
    text = f"{GOOD} For example::\n\n    x = 1\n\n{ALSO_GOOD}\n\n    {GOOD}"
    assert prose_paragraphs(text) == [f"{GOOD} For example:", ALSO_GOOD, GOOD]


def test_a_missing_final_stop_is_added():
    assert prose_paragraphs(GOOD.rstrip(".")) == [GOOD]
    assert prose_paragraphs(f"{GOOD[:-1]}:") == [f"{GOOD[:-1]}:"]


@pytest.mark.parametrize("text", ["", "\n\n", "x"])
def test_no_text_gives_no_paragraphs(text):
    assert prose_paragraphs(text) == []
