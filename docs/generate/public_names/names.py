"""The public names, found by walking the package."""

import builtins
import dataclasses
import functools
import importlib
import inspect
import pathlib
import pkgutil
import re
import types

from docs.generate import docstrings
from docs.generate.public_names.class_members import PACKAGE, members
from docs.generate.public_names.completeness import incomplete
from docs.generate.public_names.definitions import (
    comment_above,
    definition,
    fields_with_comments,
)

ROOT = pathlib.Path(__file__).parents[3]


@dataclasses.dataclass(frozen=True)
class Name:
    """A public name.

    Attributes:
        package: the package that exports it and documents it, such as `"keras_tupe.layers"`.
        name: as it is imported from there.
        value: the object.
        kind: `"class"`, `"function"`, `"data"` or `"module"`.
        others: names of other packages that export it too.
        file: path of its source file in the repository.
        text: its docstring, or the comment of a constant.
    """

    package: str
    name: str
    value: object
    kind: str
    others: tuple
    file: str
    text: str

    @property
    def full(self):
        """The name with its package."""
        return f"{self.package}.{self.name}"

    @functools.cached_property
    def docstring(self):
        """The `Docstring`."""
        return docstrings.parse(self.text)


@functools.cache
def packages():
    """Returns the public packages: name -> module, those above before those in them.

    A folder is public if it has an `__all__` and the folder above is public.
    """
    found, open_ = {}, [PACKAGE]
    while open_:
        name = open_.pop(0)
        module = importlib.import_module(name)
        if not hasattr(module, "__all__"):
            continue
        found[name] = module
        open_ += sorted(
            f"{name}.{inner.name}"
            for inner in pkgutil.iter_modules(module.__path__)
            if inner.ispkg and not inner.name.startswith("_")
        )
    return found


@functools.cache
def all_names():
    """Returns all public names: full name -> `Name`, each at the first package that exports it.

    Raises:
        ValueError: if a name has no docstring, or its docstring is not complete.
    """
    found, owners = {}, {}
    for package, module in packages().items():
        for name in module.__all__:
            value = getattr(module, name)
            kind = _kind(value)
            file, node = definition(package, name)
            owner = owners.setdefault((file, node.lineno if node else 0), f"{package}.{name}")
            if owner == f"{package}.{name}":
                text = comment_above(file, node) if kind == "data" else inspect.getdoc(value)
                path = file.relative_to(ROOT).as_posix()
                text = text or ""
                is_record = kind == "class" and dataclasses.is_dataclass(value)
                if is_record and not re.search("^(Args|Attributes):", text, re.MULTILINE):
                    text += fields_with_comments(value)
                found[owner] = Name(package, name, value, kind, (), path, text)
            else:
                others = (*found[owner].others, f"{package}.{name}")
                found[owner] = dataclasses.replace(found[owner], others=others)
    problems = [problem for name in found.values() for problem in incomplete(name)]
    if problems:
        raise ValueError("\n".join(problems))
    return found


def _kind(value):
    if isinstance(value, types.ModuleType):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isfunction(value) else "data"


def inherited(name):
    """Returns the methods of a class that another public class documents: method -> full name.

    Args:
        name: a `Name`.
    """
    classes = {one.value: one for one in all_names().values() if one.kind == "class"}
    found = {}
    for method, (_, plain, _) in members(name.value).items():
        for above in name.value.__mro__[1:]:
            if above in classes and members(above).get(method, (None, None))[1] is plain:
                found[method] = f"{classes[above].full}.{method}"
    return found


def exists(dotted):
    """Whether a dotted name of the package can be imported.

    Args:
        dotted: such as `"keras_tupe.layers.ClsReset"`.
    """
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for attribute in parts[cut:]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = getattr(found, attribute, fields.get(attribute, builtins))
            if found is builtins:
                return False
        return True
    return False
