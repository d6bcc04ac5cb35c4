"""What a docstring must say of a public name, and does not."""

import inspect
import re

from docs.generate import docstrings
from docs.generate.public_names.class_members import is_layer, members, parameters


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
    """Returns the arguments that a docstring does not name: of functions, in code anywhere.

    It may say that they are those of another class: "Arguments, ... are those of `Name`".

    Args:
        name: a `Name`.
    """
    named = name.docstring.names("Args", "Attributes")
    if name.kind == "function":
        named |= set(re.findall(r"\*{0,2}\w+", _code(name.text)))
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


def _says_shapes(name):
    titles = name.docstring.titles()
    has_shapes = {"Call arguments", "Returns"} <= titles
    return has_shapes or "Equation" in name.text or _like(name) is not None
