"""The public names of the package, found by walking it, with what their docstrings must say."""

import ast
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

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = "keras_tupe"


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
            file, node = definition(package, name)
            owner = owners.setdefault((file, node.lineno if node else 0), f"{package}.{name}")
            if owner == f"{package}.{name}":
                text = _comment(file, node) if _kind(value) == "data" else inspect.getdoc(value)
                path = file.relative_to(ROOT).as_posix()
                found[owner] = Name(package, name, value, _kind(value), (), path, text or "")
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


def _comment(file, node):
    """Returns the comment in the lines above an assignment."""
    lines = file.read_text(encoding="utf-8").splitlines()[: node.lineno - 1]
    found = []
    while lines and lines[-1].startswith("# "):
        found.insert(0, lines.pop()[2:])
    return " ".join(found)


def members(value):
    """Returns the public methods and properties of a class: name -> (kind, object, docstring).

    Left out are those that only carry out what a class above promises, such as Keras's `build`.
    """
    found, seen = {}, set()
    for parent in value.__mro__:
        if not parent.__module__.startswith(PACKAGE):
            continue
        for name, one in vars(parent).items():
            if name.startswith("_") or name in {*seen, *getattr(value, "__dataclass_fields__", ())}:
                continue
            kind = {property: "property", classmethod: "class method", staticmethod: "static"}.get(
                type(one), "method" if inspect.isfunction(one) else None
            )
            kind = "property" if isinstance(one, functools.cached_property) else kind
            if kind is None:
                continue
            plain = getattr(one, "__func__", None) or getattr(one, "fget", None)
            plain = plain or getattr(one, "func", one)
            seen.add(name)
            said = docstrings.parse(plain.__doc__ or "")
            if "Args" in said.titles() or not _is_promised(value, parent, name, plain):
                found[name] = kind, plain, said
    return {name: found[name] for name in sorted(found)}


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


def _is_promised(value, parent, name, plain):
    """Whether a method only carries out what another library's class, or one above, says of it."""
    if not plain.__doc__ and name in docstrings.parse(inspect.getdoc(value)).names("Attributes"):
        return True
    others = [above for above in value.__mro__ if name in vars(above) and above is not parent]
    if plain.__doc__:
        return any(not above.__module__.startswith(PACKAGE) for above in others)
    return bool(others) or f"super().{name}(" in inspect.getsource(plain)


def parameters(value):
    """Returns the parameters of a function or class, `[]` where there is no signature."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [parameter for parameter in found if parameter.name not in ("self", "cls")]


def incomplete(name):
    """Returns a sentence for each thing that a name's docstring must say and does not.

    Args:
        name: a `Name`.
    """
    if name.kind == "module":
        return []
    what = "comment above the constant" if name.kind == "data" else "docstring"
    if not name.text or _is_made(name):
        return [f"A public name must have a {what}. Received: {name.full} of {name.file}"]
    found = []
    summary = name.text if name.kind == "data" else name.docstring.summary
    if not summary.rstrip().endswith((".", "?", ":")):
        found.append(
            f"The {what} must begin with a sentence in one line. Received: {name.full} of "
            f"{name.file}, {summary!r}"
        )
    if name.kind == "data":
        return found
    missing = unnamed(name)
    if missing:
        found.append(
            f"The docstring must name every argument under `Args:`. Received: {name.full} of "
            f"{name.file}, without {', '.join(missing)}"
        )
    if name.kind == "class":
        for method, (kind, plain, said) in members(name.value).items():
            if not said.summary:
                found.append(
                    f"A public method must have a docstring. Received: {name.full}.{method} of "
                    f"{name.file}"
                )
                continue
            named = {one.lstrip("*") for one in said.names("Args")} | set(
                re.findall(r"\w+", _code(plain.__doc__))
            )
            words = [] if kind == "property" else [p.name for p in parameters(plain)]
            if missing := [word for word in words if word not in named]:
                found.append(
                    "The docstring must name every argument. Received: "
                    f"{name.full}.{method} of {name.file}, without {', '.join(missing)}"
                )
    if is_layer(name.value) and not _says_shapes(name):
        found.append(
            "The docstring of a layer must have its equation, or `Call arguments:` and "
            f"`Returns:` with shapes. Received: {name.full} of {name.file}"
        )
    return found


def _is_made(name):
    """Whether a docstring is one that Python made for a dataclass."""
    return name.text.startswith(f"{getattr(name.value, '__name__', None)}(")


def _code(text):
    return " ".join(re.findall(r"`([^`]+)`", text))


def unnamed(name):
    """Returns the arguments that a docstring does not name.

    It may say that they are those of another class: "Arguments, ... are those of `Name`".

    Args:
        name: a `Name`.
    """
    named = name.docstring.names("Args", "Attributes")
    for above in getattr(name.value, "__mro__", ()) if _like(name) else ():
        named |= docstrings.parse(inspect.getdoc(above) or "").names("Args")
    stars = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    if name.kind == "class" and issubclass(name.value, BaseException):
        return []
    wanted = [stars.get(one.kind, "") + one.name for one in parameters(name.value)]
    return [one for one in wanted if one not in named]


def _like(name):
    """Returns the class above whose arguments a class has, if its docstring says so."""
    said = re.search(r"Arguments, .*? are those of\s+`(\w+)`", name.text, re.DOTALL)
    above = getattr(name.value, "__mro__", ())
    return next((one for one in above if said and one.__name__ == said[1]), None)


def is_layer(value):
    """Whether a class is a Keras layer, a model among them."""
    import keras

    return inspect.isclass(value) and issubclass(value, keras.layers.Layer)


def _says_shapes(name):
    titles = name.docstring.titles()
    has_shapes = {"Call arguments", "Returns"} <= titles
    return has_shapes or "Equation" in name.text or _like(name) is not None


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
