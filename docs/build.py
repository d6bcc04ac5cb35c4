"""From pages to a site: Sphinx, with warnings as errors, into a folder that is complete or not."""

import dataclasses
import pathlib
import shutil
import sys
import time
import warnings

from docs import html_check, sources
from keras_tupe._new_folder import new_folder
from training.command.folder_lock import FolderLock

_MADE = ("source", "html", "doctrees")
_UNFINISHED = (".lock", ".html.")
_DOOR = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>keras_tupe</title>
<meta http-equiv="refresh" content="0; url=pages/index.html"></head>
<body><a href="pages/index.html">keras_tupe</a></body>
</html>
"""


@dataclasses.dataclass(frozen=True)
class Site:
    """A site that was built.

    Attributes:
        pages: number of pages.
        links: number of links and loads inside of it, all of which lead to something.
        seconds: that the build took.
        index: path of the start page.
    """

    pages: int
    links: int
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
        ValueError: if the folder is somebody else's, or a page has a mistake.
    """
    start = time.monotonic()
    _check_own(out)
    with FolderLock(out):
        pages = sources.write(out / "source")
        with new_folder(out / "html", check=lambda path: None) as html:
            if (out / "doctrees").exists() and (out / "html").exists():
                shutil.copytree(out / "html", html, dirs_exist_ok=True)  # only what changed is anew
            try:
                _run_sphinx(out / "source", html, out / "doctrees", draft)
                (html / "index.html").write_text(_DOOR, encoding="utf-8")
                links = _check(html, draft)
            except BaseException:
                sources.remove(out / "doctrees")  # else the next build would not warn again
                raise
        if draft:
            sources.remove(out / "doctrees")
    return Site(pages, links, time.monotonic() - start, out / "html" / "index.html")


def _check_own(out):
    """Raises a ValueError if a folder holds what this command does not make."""
    found = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    names = [name for name in found if not name.startswith(_UNFINISHED)]
    is_ours = (out / "source" / "pages" / "index.md").is_file()
    others = [name for name in names if name not in _MADE or not is_ours]
    if others:
        raise ValueError(
            "--out must be a new folder, or one that `python -m docs` made: choose another. "
            f"Received: {str(out)!r}, which holds {', '.join(others[:5])}"
        )


def _run_sphinx(source, html, doctrees, draft):
    from sphinx.cmd.build import build_main

    words = [] if draft else ["-W"]
    words += ["--keep-going", "-q", "-n", "-c", sources.FOLDER, "-d", doctrees, source, html]
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)  # of extensions that use Sphinx's older names
        failed = build_main([str(word) for word in words])
    if failed:
        raise ValueError("The site was not made: correct what is told above, and build again.")


def _check(html, draft):
    """Returns the number of links, after a look at all pages; see `html_check`."""
    site = html_check.Site(html)
    problems = site.problems()
    if problems and draft:
        print("\n".join(problems), file=sys.stderr)
    elif problems:
        raise ValueError("\n".join(problems))
    return site.inside()
