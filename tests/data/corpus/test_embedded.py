"""The embedded corpus: from a package made for the test, and from Python's own help topics."""

import pytest

from keras_tupe.data.corpus.embedded import embedded_documents

FIRST = "This is the first sentence of a text that has no other purpose than to be long enough."
SECOND = "The second one is here so that the document has more than the twenty words it needs."
THIRD = "A third sentence is long as well, and it comes again in another file of the package."
FOURTH = "The fourth one comes only once, in the second file, after a sentence that is not new."


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "made_for_a_test"
    files = {
        "__init__.py": f'"""{FIRST}\n\n{SECOND}\n"""\nraise RuntimeError("imported")\n',
        "a.py": f'"""Too short."""\n\nclass A:\n    """{THIRD} {SECOND} {FOURTH[:-1]} too.\n'
        f'\n    Args:\n        x: {FIRST}\n    """\n',
        "b.py": f'if True:\n    def f():\n        """{THIRD} {FOURTH} Twice is enough."""\n',
        "c.py": 'def broken(:\n    """text"""\n',
        "tests/a.py": f'"""{FIRST} It is in a test, {SECOND}"""\n',
        "a_test.py": f'"""{FIRST} It is in another test, {SECOND}"""\n',
    }
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def test_docstrings_are_read_without_importing_and_nothing_comes_twice(package):
    assert embedded_documents((package,)) == [
        f"{FIRST}\n{SECOND}",
        f"{THIRD} {FOURTH[:-1]} too.",
        f"{FOURTH} Twice is enough.",
    ]


def test_docstrings_inside_of_any_statement_are_found_in_their_order(tmp_path, monkeypatch):
    openings = (
        "try:",
        "except OSError:",
        "else:",
        "finally:",
        "match value:\n  case 1:",
        "with value:",
        "for item in value:",
        "else:",
        "while value:",
        "async def g():\n  if value:\n    pass\n  elif value:",
    )
    words = "this text is number {} and it is long enough for a document of this package, which "
    words += "needs more than twenty words to be one at all."
    lines = []
    for number, opening in enumerate(openings):
        lines += [
            opening,
            f'    def f():\n      """{words.format(3 * chr(97 + number)).capitalize()}"""',
        ]
    folder = tmp_path / "made_of_statements"
    folder.mkdir()
    (folder / "__init__.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    expected = [words.format(3 * chr(97 + number)).capitalize() for number in range(len(openings))]
    assert embedded_documents((folder.name,)) == expected


def test_progress_sees_every_file(package):
    seen = []

    def progress(files):
        for file in files:
            seen.append(file.name)
            yield file

    embedded_documents((package,), progress)
    assert seen == ["__init__.py", "a.py", "b.py", "c.py"]


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(ValueError, match=r"install this one .*Received: source='not_installed'$"):
        embedded_documents(("tqdm", "not_installed"))


def test_python_itself_gives_a_thousand_documents_and_help_topics_are_among_them():
    documents = embedded_documents(("python",))
    assert len(documents) > 1000
    assert len(set(documents)) == len(documents)
    sizes = [len(document.split()) for document in documents]
    assert min(sizes) >= 20
    assert sum(sizes) > 100_000
    topics = [text for text in documents if "used to wrap the execution of a block" in text]
    assert topics
    assert "suite_stmt" not in topics[0]
