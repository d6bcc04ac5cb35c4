"""Real English on every machine: the docstrings of installed packages and of Python itself."""

import ast
import gc
import importlib.util
import itertools
import pathlib
import re
import sys
import sysconfig
import warnings

from keras_tupe.data.corpus.prose import prose_paragraphs
from keras_tupe.data.corpus.sentences import split_sentences

# The packages whose docstrings `embedded_documents` reads where they are installed.
SOURCES = (
    "keras",
    "keras_hub",
    "matplotlib",
    "mpl_toolkits",
    "numpy",
    "python",
    "tensorflow",
    "tensorflow_text",
    "tokenizers",
    "tqdm",
)

_MIN_DOCUMENT_WORDS = 20
_MIN_REPEATED_WORDS = 6  # shorter sentences may come again
_TEST_FOLDERS = frozenset(("test", "tests", "testing", "idle_test"))
_TEST_FILE = re.compile(r"(test_.*|.*_test|conftest)\.py")
# parts of Python that some systems leave out or package apart
_NOT_EVERYWHERE = {"distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "tkinter"}
_NOT_EVERYWHERE |= {"turtle", "turtledemo", "venv"}

_HOLDERS = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef  # of docstrings
_STATEMENTS = "body", "handlers", "cases", "orelse", "finalbody"  # fields that hold statements


def embedded_documents(sources=SOURCES, progress=iter):
    """Reads English technical prose from the Python sources on this machine: a list of strings.

    One document is the prose (see `prose_paragraphs`) of a docstring, or of one of the language's
    help topics (`pydoc_data.topics`), one paragraph per line. A sentence of six words or more that
    came before, letter for letter, is left out, so that no training sentence is held out as well;
    then documents of fewer than 20 words are.

    Nothing is imported and nothing is downloaded: the files are parsed with `ast`. Tests are left
    out, and so are parts of Python that some systems package apart. The same versions give the same
    documents, in the same order, on every machine.

    Args:
        sources: names of installed packages, and "python" for the standard library and its help
            topics. Defaults to this project's direct dependencies that have prose.
        progress: function that wraps the list of files to read, such as `tqdm.tqdm`.

    Raises:
        ValueError: if a package is not installed.
    """
    files = [file for source in sources for file in _source_files(source)]
    documents, seen, was_enabled = [], set(), gc.isenabled()
    gc.disable()  # syntax trees have no cycles; looking for some took half of the time
    try:
        for text in itertools.chain.from_iterable(map(_texts, progress(files))):
            if len(text.split()) < _MIN_DOCUMENT_WORDS:
                continue
            paragraphs = [_unseen(paragraph, seen) for paragraph in prose_paragraphs(text)]
            document = "\n".join(filter(None, paragraphs))
            if len(document.split()) >= _MIN_DOCUMENT_WORDS:
                documents.append(document)
    finally:
        if was_enabled:
            gc.enable()
    return documents


def _unseen(paragraph, seen):
    """The sentences of a paragraph that are new, or short; `seen` is brought up to date."""
    kept = []
    for sentence in split_sentences(paragraph):
        letters = re.sub(r"[^a-z]+", " ", sentence.lower())
        if letters not in seen or len(letters.split()) < _MIN_REPEATED_WORDS:
            kept.append(sentence)
        seen.add(letters)
    return " ".join(kept)


def _source_files(source):
    """The Python files of a source, in the order of their names, tests apart."""
    if source == "python":
        root = pathlib.Path(sysconfig.get_path("stdlib"))
        names = sorted(sys.stdlib_module_names - _NOT_EVERYWHERE)
        files = [file for name in names for file in _python_files(root / name)]
        return [*files, root / "pydoc_data" / "topics.py"]
    spec = importlib.util.find_spec(source)  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(
            f"The embedded corpus is made from installed packages; install this one or leave it "
            f"out. Received: source={source!r}"
        )
    return [
        file
        for folder in sorted(spec.submodule_search_locations)
        for file in _python_files(pathlib.Path(folder))
    ]


def _python_files(path):
    """The Python files of a package folder, or the one file of a module."""
    if not path.is_dir():
        return [path.with_suffix(".py")] if path.with_suffix(".py").is_file() else []
    found = ((file.relative_to(path).parts, file) for file in path.rglob("*.py"))
    return [
        file
        for parts, file in sorted(found)
        if not _TEST_FOLDERS.intersection(parts[:-1]) and not _TEST_FILE.fullmatch(parts[-1])
    ]


def _texts(file):
    """Yields the docstrings of a file, or all the texts of the table of help topics."""
    source = file.read_bytes()
    if b'"""' not in source and b"'''" not in source and file.name != "topics.py":
        return  # nothing long enough; parsing is what costs time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in other people's strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # a template, or another version's syntax
    if file.parts[-2:] != ("pydoc_data", "topics.py"):
        yield from _docstrings(tree)
        return
    table = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    yield from (text for _, text in sorted(ast.literal_eval(table).items()))


def _docstrings(node):
    """Yields the docstrings of a module, class or function and of all inside it, in order."""
    if isinstance(node, _HOLDERS):
        docstring = ast.get_docstring(node, clean=False)
        if docstring:
            yield docstring
    for field in _STATEMENTS:  # expressions hold no docstring and are most of the tree
        for child in getattr(node, field, ()):
            yield from _docstrings(child)
