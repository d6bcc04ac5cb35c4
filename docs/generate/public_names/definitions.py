"""Where a name is defined, and what comments say of constants and fields."""

import ast
import functools
import importlib
import inspect
import pathlib
import re
import types


def definition(module, name):
    """Returns where a name is defined: the path of the file, and the node in it.

    Args:
        module: name of a module that has it.
        name: the name there.
    """
    file = _file(module)
    for node in _tree(file).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    value = getattr(importlib.import_module(node.module), alias.name)
                    if isinstance(value, types.ModuleType):
                        return _file(value.__name__), None
                    return definition(node.module, alias.name)
        elif isinstance(node, ast.Assign):
            if name in [getattr(target, "id", None) for target in node.targets]:
                return file, node
        elif getattr(node, "name", None) == name:
            return file, node
    raise ValueError(f"A public name must be defined in a file. Received: {module}.{name}")


@functools.cache
def _file(module):
    return pathlib.Path(importlib.util.find_spec(module).origin)


@functools.cache
def _tree(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def comment_above(file, node):
    """Returns the comment in the lines above an assignment.

    Args:
        file: path of the source file.
        node: the assignment in it.
    """
    lines = file.read_text(encoding="utf-8").splitlines()[: node.lineno - 1]
    found = []
    while lines and lines[-1].startswith("# "):
        found.insert(0, lines.pop()[2:])
    return " ".join(found)


def fields_with_comments(record):
    """Returns the section `Attributes:` of a dataclass that says its fields in comments.

    A comment stands behind a field, or in lines above it; it may be of several fields.

    Args:
        record: the class.
    """
    found, above, is_new = [], [], True
    for line in inspect.getsource(record).splitlines():
        field = re.match(r"    (\w+): [^#]*(?:# (.+))?$", line)
        if comment := re.match(r"    # (.+)$", line):
            above = [comment[1]] if is_new else [*above, comment[1]]
        elif field and (said := field[2] or " ".join(above)):
            found.append(f"    {field[1]}: {said.rstrip('.')}.")
        is_new = comment is None
    return "\n\nAttributes:\n" + "\n".join(found) if found else ""
