"""Modules in processes of their own, also where the current folder has a `training` of its own.

`python -m` looks into the current folder first. This file is run by its path, looks first where the
package lies that it is a part of, and then does as `python -m` does.
"""

import contextlib
import os
import runpy
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def words_of(module, *words):
    """Returns the command line of a process that does what `python -m module words` does."""
    return [sys.executable, "-P", os.path.abspath(__file__), module, *words]


@contextlib.contextmanager
def safe_environment():
    """Inside of it, processes that others start with `python -m` do not look here first either."""
    names = ("PYTHONSAFEPATH", "PYTHONPATH")
    before = {name: os.environ.get(name) for name in names}
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, before["PYTHONPATH"]]))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


if __name__ == "__main__":
    sys.path.insert(0, _ROOT)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
