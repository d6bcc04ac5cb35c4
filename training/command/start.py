"""Modules in processes of their own, also where the current folder has a `training` of its own.

`python -m` looks into the current folder first. This file is run by its path, puts the package that
it is a part of first, and then does as `python -m` does.
"""

import contextlib
import importlib.util
import os
import runpy
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ROOT = os.path.dirname(_PACKAGE)


def words_of(module, *words):
    """Returns the command line of a process that does what `python -m module words` does.

    Args:
        module: dotted name.
        *words: strings.
    """
    return [sys.executable, "-P", os.path.abspath(__file__), module, *words]


@contextlib.contextmanager
def safe_environment():
    """Inside of it, processes that others start with `python -m` do not look here first either."""
    names = ("PYTHONSAFEPATH", "PYTHONPATH")
    before = {name: os.environ.get(name) for name in names}
    os.environ["PYTHONSAFEPATH"] = "1"
    if not _is_installed():
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, before["PYTHONPATH"]]))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _is_installed():
    return os.path.basename(_ROOT) in ("site-packages", "dist-packages")


def _put_in_place():
    """Makes `training` the package of this file, whatever the path has first."""
    if _ROOT not in sys.path:
        sys.path.insert(0, _ROOT)
    spec = importlib.util.spec_from_file_location(
        "training",
        os.path.join(_PACKAGE, "__init__.py"),
        submodule_search_locations=[_PACKAGE],
    )
    sys.modules["training"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["training"])


if __name__ == "__main__":
    _put_in_place()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
