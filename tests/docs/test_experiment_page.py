"""The list of experiments on their page, made of the definitions."""

import pathlib

import pytest

from docs.generate import experiments
from training.studies.papers.definition import find, names


@pytest.fixture(scope="module")
def page():
    return experiments.pages()[experiments.PAGE]


@pytest.mark.parametrize("name", names())
def test_every_experiment_is_listed_with_its_question_and_paper(page, name):
    experiment = find(name)
    (line,) = [x for x in page.splitlines() if x.startswith(f"| `{name}`") and "](" in x]
    assert experiment.question in line
    assert f"]({experiment.source.url}), {experiment.source.place}" in line
    assert ("`--glue`" in line) == (experiment.scales["laptop"].glue is not None)


@pytest.mark.parametrize("name", names())
def test_a_laptop_has_an_hour_or_two_and_rows_of_the_definition(page, name):
    (line,) = [x for x in page.splitlines() if x.startswith(f"| `{name}`") and "](" not in x]
    hours, length = line.split("|")[-2].split()
    assert 0.5 < float(hours) < 2.5
    assert length == f"({find(name).scales['laptop'].length})"


def test_a_page_without_its_comment_is_refused():
    text = pathlib.Path("docs/pages", experiments.PAGE).read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="must have the line"):
        experiments.filled(text.replace(experiments.COMMENT, ""))
