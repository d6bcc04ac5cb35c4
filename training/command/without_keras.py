"""Parts of `keras_tupe` that need no Keras, imported without the package's `__init__`, which does.

Settings are read and checked in a moment that way; Keras and TensorFlow take many seconds.
"""

import contextlib
import importlib.util
import pathlib
import re
import sys

_NAME = "keras_tupe"
_ALONE = {"__init__.py", "__pycache__"}
_imported = {}


class _Bare:
    """Finds the package's folders as packages without content, and its files as they are.

    A folder of one file, `keras_tupe.check`, is that file.
    """

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] != _NAME:
            return None
        finders = (finder.find_spec for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (find(name, path, target) for find in finders)), None)
        folders = spec and spec.submodule_search_locations
        if folders and {x.name for x in pathlib.Path(folders[0]).iterdir()} - _ALONE:
            spec.loader = self
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        pass


@contextlib.contextmanager
def without_keras():
    """Inside of it, `from keras_tupe.a.b import c` runs no `__init__` of the package.

    `keras_tupe.a.b` and all that it imports of the package may import the standard library and
    NumPy alone. What was imported is not there for others, who import the whole package. Where that
    is there already, nothing is different.
    """
    if _NAME in sys.modules:
        yield
        return
    finder = _Bare()
    sys.modules.update(_imported)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == _NAME]:
            _imported[name] = sys.modules.pop(name)


def package_folder():
    """Returns the folder of `keras_tupe`, which is not imported."""
    return pathlib.Path(importlib.util.find_spec(_NAME).origin).parent


def version():
    """Returns the version of `keras_tupe`."""
    text = (package_folder() / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]


def method_names():
    """Returns the names of the positional methods, sorted, with those whose files were loaded."""
    return _names_in("positions")


def objective_names():
    """Returns the names of the objectives, sorted."""
    return _names_in("objectives")


def pattern_names():
    """Returns the names of the attention patterns, sorted: as `method_names`."""
    return _names_in("attention_patterns")


def task_names():
    """Returns the names of the tasks, sorted."""
    return _names_in("tasks")


def _names_in(room):
    """Returns the names of the records of a room; where it is not imported, those of its files."""
    registry = getattr(sys.modules.get(f"{_NAME}.{room}"), "REGISTRY", None)
    if registry is not None:
        return sorted(registry.records)
    return sorted(file.stem for file in (package_folder() / room).glob("[!_]*.py"))
