"""What stands between backticks in a docstring: a link, where it is a public name or a command."""

import functools
import re

from docs.generate import public_names
from training.__main__ import commands

_COMMAND = re.compile(r"(?:python -m )?training\.(\w+)(?= |$)|keras-tupe (\w+)(?= |$)")
_NAME = re.compile(r"[A-Za-z_][\w.]*(?=\(\)$|$)")


class Links:
    """Answers what a piece of code becomes in the docstring of one name.

    Args:
        package: the package that the docstring stands in.
        own: the names that mean something of the docstring itself, such as its arguments.
        about: the full name that is documented, which is not linked to itself.
        but: the method that is documented, which is not linked to itself either.
    """

    def __init__(self, package, own=(), about="", but=None):
        self._package, self._own, self._about = package, set(own), about
        self._members = {
            method: target for method, target in members_of(about).items() if method != but
        }

    def __call__(self, code):
        """Returns Markdown for what stands between backticks.

        Raises:
            ValueError: if it begins with `keras_tupe.` and is no name of the package.
        """
        shown = f"`` {code} ``" if "`" in code else f"`{code}`"
        target = self._target(code)
        if target is not None:
            return f"{{py:obj}}`{code} <{target}>`"
        command = _COMMAND.match(code)
        name = command and (command[1] or command[2])
        if name in _commands():
            rest = code[command.end(command.lastindex) :]
            return f"[`keras-tupe {name}{rest}`](commands/{name}.md)"
        return shown

    def _target(self, code):
        found = _NAME.match(code)
        if found is None or found[0] in self._own or not found[0].strip("."):
            return None
        name, _, rest = found[0].partition(".")
        if name == public_names.PACKAGE:
            return self._full(found[0], code)
        if found[0] in self._members:
            return self._members[found[0]]
        full = _by_name(self._package).get(name)
        if full in (None, self._about) or name in self._own:
            return None
        if not rest:
            return full
        return members_of(full).get(rest)

    def _full(self, dotted, code):
        full = _canonical().get(dotted)
        if full is not None:
            return None if full == self._about else full
        above, _, rest = dotted.rpartition(".")
        if rest in members_of(_canonical().get(above)):
            return members_of(_canonical()[above])[rest]
        if not public_names.exists(dotted):
            raise ValueError(
                "A docstring must name what is there, or be corrected. Received: "
                f"`{code}` in {self._about or self._package}"
            )
        return None


@functools.cache
def _commands():
    return commands()


@functools.cache
def _canonical():
    """Returns every full name that can be imported -> where it is documented."""
    found = {package: package for package in public_names.packages()}
    for full, name in public_names.all_names().items():
        if name.kind != "module":
            found |= dict.fromkeys((full, *name.others), full)
    return found


@functools.cache
def members_of(full):
    """Returns the methods of a public class -> where each is documented.

    Args:
        full: name of the class; of what is no class there are none.
    """
    name = public_names.all_names().get(full)
    if name is None or name.kind != "class":
        return {}
    own = {method: f"{full}.{method}" for method in public_names.members(name.value)}
    return {**own, **public_names.inherited(name)}


@functools.cache
def _by_name(package):
    """Returns names without their package -> full name: all that could mean nothing else.

    Where two packages have a name, it is the one of `package`. A word of the language, such as
    `get`, means a name in its own package only.
    """
    found = {}
    for dotted, full in _canonical().items():
        above, _, name = dotted.rpartition(".")
        is_plain = name.islower() and "_" not in name
        if above == package or not (is_plain or found.get(name, full) != full):
            found[name] = full
    return found
