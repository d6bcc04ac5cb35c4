"""Every public name is documented completely; what is missing ends the build."""

import dataclasses
import re

import keras
import pytest

import keras_tupe
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


def refused():
    with pytest.raises(ValueError, match="Received: ") as error:
        reference.pages()
    (sentence,) = str(error.value).splitlines()
    return sentence


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


def test_folders_are_packages_by_their_all():
    found = set(public_names.packages())
    assert {"keras_tupe", "keras_tupe.trainer", "keras_tupe.positions.oracle"} <= found
    assert not found & {"keras_tupe.data.corpus", "keras_tupe.models.presets"}


def test_a_class_without_a_docstring_ends_the_build(monkeypatch, forget):
    monkeypatch.setattr(keras_tupe.layers.ClsReset, "__doc__", "")
    assert "A public name must have a docstring. Received: keras_tupe.ClsReset of " in refused()


def test_an_argument_that_no_line_names_ends_the_build(monkeypatch, forget):
    text = keras_tupe.TupeBackbone.__doc__
    monkeypatch.setattr(
        keras_tupe.TupeBackbone, "__doc__", text.replace("    num_segments: ", "    ")
    )
    sentence = refused()
    assert sentence.startswith("The docstring must name every argument under `Args:`. Received: ")
    assert sentence.endswith("keras_tupe/models/tupe_backbone.py, without num_segments")


def test_an_argument_of_a_method_ends_the_build(monkeypatch, forget):
    monkeypatch.setattr(keras_tupe.data.Rows.batch, "__doc__", "A batch.")
    assert "keras_tupe.data.Rows.batch of keras_tupe/data/rows/rows.py, without step" in refused()


def test_a_summary_of_two_lines_ends_the_build(monkeypatch, forget):
    text = keras_tupe.extend_positions.__doc__
    monkeypatch.setattr(keras_tupe.extend_positions, "__doc__", text.replace(" ", "\n    ", 1))
    assert (
        "must begin with a sentence in one line. Received: keras_tupe.extend_positions" in refused()
    )


def test_a_name_that_is_not_there_ends_the_build(monkeypatch, forget):
    text = keras_tupe.extend_positions.__doc__
    monkeypatch.setattr(
        keras_tupe.extend_positions, "__doc__", f"{text}\n    See `keras_tupe.layers.ClsRest`.\n"
    )
    assert refused() == (
        "A docstring must name what is there, or be corrected. Received: "
        "`keras_tupe.layers.ClsRest` in keras_tupe.extend_positions"
    )


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


def test_a_method_of_a_class_above_is_linked(pages):
    page = pages["reference/keras_tupe.UntiedPositionalAttention.md"]
    assert "{py:method} scores" not in page
    assert "{py:obj}`scores <keras_tupe.layers.AbstractSelfAttention.scores>`" in page


def test_a_signature_is_python():
    assert reference.signature(keras_tupe.data.write_shard).startswith("(")
    shown = reference.signature(keras_tupe.positions.PositionMethod)
    assert "attention=plain_attention" in shown
    assert "<" not in shown
