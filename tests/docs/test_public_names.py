"""Every public name is documented completely; what is missing ends the build."""

import dataclasses
import re

import keras
import pytest

import keras_tupe.data
from docs.generate import docstrings, links, public_names, reference

DIRECTIVE = re.compile(
    r"^`{7}\{py:(?:class|function|data)\} (\w+).*\n:module: ([\w.]+)", re.MULTILINE
)
CACHES = (public_names.all_names, links._canonical, links.members_of, links._by_name)


@pytest.fixture
def forget():
    """What was found is found again, before and after a docstring is another."""
    for cache in CACHES:
        cache.cache_clear()
    yield
    for cache in CACHES:
        cache.cache_clear()


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_all_names_of_all_packages_are_found(pages):
    """Each is documented once, and stands in the table of every package that exports it."""
    documented = [
        f"{module}.{name}" for text in pages.values() for name, module in DIRECTIVE.findall(text)
    ]
    assert len(documented) == len(set(documented))
    names = public_names.all_names()
    assert set(documented) == {full for full, name in names.items() if name.kind != "module"}
    assert len(documented) > 150
    for package, module in public_names.packages().items():
        table = re.findall(r"\{py:obj\}`(\w+) <", pages[f"reference/{package}.md"])
        assert set(module.__all__) <= set(table), package
        assert f"({package}.md)" in pages["reference/packages.txt"]


def test_what_two_packages_export_is_documented_by_the_outer_one(pages):
    assert public_names.all_names()["keras_tupe.ClsReset"].others == ("keras_tupe.layers.ClsReset",)
    assert "<keras_tupe.ClsReset>" in pages["reference/keras_tupe.layers.md"]
    assert ":canonical: keras_tupe.layers.ClsReset" in pages["reference/keras_tupe.ClsReset.md"]


BACKBONE, EXTEND = keras_tupe.TupeBackbone, keras_tupe.extend_positions


@pytest.mark.parametrize(
    ("owner", "text", "told"),
    [
        (keras_tupe.layers.ClsReset, "", "A public name must have a docstring. Received: keras"),
        (BACKBONE, BACKBONE.__doc__.replace("    num_segments: ", "    "), "without num_segments"),
        (keras_tupe.data.Rows.batch, "A batch.", "rows/rows.py, without step"),
        (
            EXTEND,
            EXTEND.__doc__.replace(" ", "\n    ", 1),
            "must begin with a sentence in one line",
        ),
        (EXTEND, f"{EXTEND.__doc__}\n    See `keras_tupe.layers.ClsRest`.\n", "name what is there"),
    ],
)
def test_a_docstring_that_is_not_complete_ends_the_build(owner, text, told, monkeypatch, forget):
    monkeypatch.setattr(owner, "__doc__", text)
    with pytest.raises(ValueError, match="Received: ") as error:
        reference.pages()
    (sentence,) = str(error.value).splitlines()
    assert told in sentence


def record(value, kind, text):
    return public_names.Name("keras_tupe", "name", value, kind, (), "file.py", text)


class Shapeless(keras.layers.Layer):
    """Does something."""

    def __init__(self):
        super().__init__()


@dataclasses.dataclass
class Made:
    x: int = 0


class Bare:
    """Has a method."""

    def method(self):
        pass


Bare.__module__ = "keras_tupe.tests"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            record(3, "data", ""),
            "must have a comment above the constant. Received: keras_tupe.name",
        ),
        (record(3, "data", "How many"), "must begin with a sentence"),
        (
            record(Shapeless, "class", Shapeless.__doc__),
            "must have its equation, or `Call arguments:`",
        ),
        (record(Made, "class", Made.__doc__), "must have a docstring"),
        (
            record(Bare, "class", Bare.__doc__),
            "A public method must have a docstring. Received: keras_tupe.name.method",
        ),
    ],
)
def test_an_incomplete_record_is_told(name, message):
    (sentence,) = public_names.incomplete(name)
    assert message in sentence


def test_a_docstring_becomes_markdown_that_means_itself():
    text = """Sums.

    Masking: by `mask`, 2**31 of a*b, <s>, [CLS], $ and theta_; see https://a.org/b_c.

        y = x_1 * 2

    **Slow.** In this order:
    - one
      and more
    - `two`

    Args:
        x, y: numbers.
            Two lines.

    Example:
        >>> 1
        1

    References:
        A. B. 2020.
        https://a.org
    """
    shown = docstrings.markdown(docstrings.parse(text), "{{{}}}".format)
    assert shown.split("\n\n") == [
        r"**Masking**: by {mask}, 2\*\*31 of a\*b, \<s\>, \[CLS\], \$ and theta\_; see "
        "<https://a.org/b_c>.",
        "```text\ny = x_1 * 2\n```",
        "**Slow.** In this order:",
        "- one and more\n- {two}",
        "```{rubric} Arguments\n```",
        "`x`, `y`\n: numbers. Two lines.",
        "```{rubric} Example\n```",
        "```pycon\n>>> 1\n1\n```",
        "```{rubric} References\n```",
        "- A. B. 2020. <https://a.org>",
    ]


def test_code_is_linked_where_it_means_a_public_name():
    link = links.Links("keras_tupe.metrics", own=["pearson"], about="keras_tupe.metrics.f1")
    assert link("accuracy") == "{py:obj}`accuracy <keras_tupe.metrics.accuracy>`"
    assert link("ClsReset") == "{py:obj}`ClsReset <keras_tupe.ClsReset>`"
    assert link("keras_tupe.layers.ClsReset").endswith("<keras_tupe.ClsReset>`")
    assert link("Rows.batch") == "{py:obj}`Rows.batch <keras_tupe.data.Rows.batch>`"
    assert link("training.prepare") == "[`keras-tupe prepare`](commands/prepare.md)"
    for code in ("pearson", "f1", "get", "x_1", "seal", "training.nothing", "-1"):
        assert link(code) == f"`{code}`"
