"""From pages to a site: Sphinx, with warnings as errors, into a folder that is complete or not."""

import dataclasses
import importlib.util
import pathlib
import shutil
import sys
import time

from docs import sources
from keras_tupe._new_folder import new_folder
from training.command.folder_lock import FolderLock

PACKAGES = ("sphinx", "furo", "myst_parser", "latex2mathml")
_MADE = ("source", "html", "doctrees")
_UNFINISHED = (".lock", ".html.")


@dataclasses.dataclass(frozen=True)
class Site:
    """A site that was built.

    Attributes:
        pages: number of pages.
        seconds: that the build took.
        index: path of the start page.
    """

    pages: int
    seconds: float
    index: pathlib.Path


def build(out, draft=False):
    """Builds the site.

    Args:
        out: folder; `html` in it is replaced when all is well.
        draft: whether warnings are told only.

    Returns:
        A `Site`.

    Raises:
        ImportError: without the packages of the extra.
        ValueError: if the folder is somebody else's, or a page has a mistake.
    """
    _check_packages()
    start = time.monotonic()
    _check_own(out)
    with FolderLock(out):
        pages = sources.write(out / "source")
        with new_folder(out / "html", check=lambda path: None) as html:
            if (out / "doctrees").exists() and (out / "html").exists():
                shutil.copytree(out / "html", html, dirs_exist_ok=True)  # only what changed is anew
            try:
                _run_sphinx(out / "source", html, out / "doctrees", draft)
            except BaseException:
                sources.remove(out / "doctrees")  # else the next build would not warn again
                raise
        if draft:
            sources.remove(out / "doctrees")
    return Site(pages, time.monotonic() - start, out / "html" / "pages" / "index.html")


def _check_packages():
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            "The documentation needs the packages of the extra: pip install -e '.[docs]'. "
            f"Received: no {', '.join(missing)}"
        )


def _check_own(out):
    """Raises a ValueError if a folder holds what this command does not make."""
    names = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    others = [name for name in names if name not in _MADE and not name.startswith(_UNFINISHED)]
    if others:
        raise ValueError(
            "--out must be a new folder, or one that `python -m docs` made: choose another. "
            f"Received: {str(out)!r}, which holds {', '.join(others[:5])}"
        )


def _run_sphinx(source, html, doctrees, draft):
    from sphinx.cmd.build import build_main

    words = [] if draft else ["-W"]
    words += ["--keep-going", "-q", "-n", "-c", sources.FOLDER, "-d", doctrees, source, html]
    if build_main([str(word) for word in words]):
        sys.stdout.flush()
        raise ValueError("The site was not made: correct what is told above, and build again.")
