"""The pages before they become a site: those written by hand, and those generated."""

import importlib
import pathlib
import pkgutil
import shutil

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parent
PAGES = FOLDER / "pages"
# What pages may show or include, beside `pages`, as the folder that it has in the repository.
_BESIDE = {"pictures": ".png", "gallery": ".png"}


def generators():
    """Returns the names of the modules and packages that generate pages, sorted."""
    found = pkgutil.iter_modules([str(FOLDER / "generate")])
    return sorted(one.name for one in found if not one.name.startswith("_"))


def generated_pages():
    """Returns all generated pages: a dictionary of path below `pages/` -> Markdown.

    Raises:
        ValueError: if two make the same page.
    """
    found = {}
    for name in generators():
        module = importlib.import_module(f"docs.generate.{name}")
        if not hasattr(module, "pages"):
            continue  # what the others share
        for path, text in module.pages().items():
            if path in found:
                raise ValueError(
                    "A page must be made by one module of docs/generate. "
                    f"Received: {path!r}, also of docs/generate/{name}.py"
                )
            found[path] = text
    return found


def write(folder):
    """Makes a folder hold all sources and nothing else; what has not changed stays as it is.

    Args:
        folder: path of the folder.

    Returns:
        Number of pages.
    """
    wanted = {}
    for path in PAGES.rglob("*"):
        if path.is_file():
            wanted["pages" / path.relative_to(PAGES)] = path.read_bytes()
    for path, text in generated_pages().items():  # may fill in a page that is written by hand
        wanted[pathlib.Path("pages", path)] = text.encode("utf-8")
    for name, ending in _BESIDE.items():
        for path in (FOLDER / name).rglob(f"*{ending}"):
            wanted[path.relative_to(FOLDER)] = path.read_bytes()
    wanted[pathlib.Path("CHANGELOG.md")] = (ROOT / "CHANGELOG.md").read_bytes()
    for path in sorted(folder.rglob("*"), reverse=True) if folder.exists() else ():
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and path.relative_to(folder) not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return sum(name.suffix == ".md" and name.parts[0] == "pages" for name in wanted)


def remove(folder):
    """Removes a folder, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)
