"""The source files of package, commands and benchmarks, and what each imports."""

import ast
import functools
import pathlib

import keras_tupe

PACKAGE = pathlib.Path(keras_tupe.__file__).parent
ROOT = PACKAGE.parent


def modules():
    """Returns the source files of package, scripts and benchmarks, by dotted name."""
    folders = (PACKAGE, ROOT / "training", ROOT / "benchmarks")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    found = {}
    for file in files:
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


@functools.cache
def imports(name, top_level_only=False):
    """Returns the dotted names that a module imports; `from a import b` gives `a.b`."""
    found, todo = [], [ast.parse(MODULES[name].read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        if not (top_level_only and isinstance(node, (ast.FunctionDef, ast.Lambda))):
            todo += list(ast.iter_child_nodes(node))
    return found


def imported_modules(name):
    """Returns the modules of ours that a module imports, early or late, by their full names."""
    found = set()
    for imported in imports(name):
        inside = imported.rpartition(".")[0]  # of a name in a module
        found |= {imported if imported in MODULES else inside} & MODULES.keys()
    return found - {name}


def part_of(name):
    """Returns the part of the package that a dotted name lies in: `layers`, `training`, ..."""
    parts = name.split(".")
    if parts[0] == "keras_tupe":
        return parts[1] if len(parts) > 1 else "keras_tupe"
    return parts[0]
