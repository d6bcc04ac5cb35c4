"""What several tests of `training.prepare` start from."""

import prepare_cases as cases
import pytest


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    """A vocabulary of the good documents, so that the tests need not train one."""
    folder = tmp_path_factory.mktemp("vocabulary")
    source = cases.write_text(folder / "corpus.txt", cases.documents(number=61))
    return cases.run(folder / "rows", source) / "vocabulary.txt"


@pytest.fixture
def options(vocabulary):
    return ("--vocabulary", str(vocabulary), *cases.OPTIONS[2:])
