"""TOML that anybody may have written: read as a dictionary, or refused with a reason."""

import dataclasses
import math
import pathlib
import tomllib
import typing

from training.command.kinds import kind_of, nearest

# Type -> the types of its values, how one is called, how several are; more is said by `Annotated`.
_KINDS = {
    str: ((str,), "a text", "texts"),
    int: ((int,), "an integer", "integers"),
    float: ((int, float), "a number", "numbers"),
}
COUNT = typing.Annotated[int, " >= 1", lambda value: value >= 1]
RATE = typing.Annotated[float, " above 0", lambda value: value > 0]
_SHOWN = 100  # characters of what is told of an unknown key
_MAX_INTEGER = 2**63  # of TOML; Python's parser has no limit


def read_toml(path):
    """Returns the dictionary in a TOML file.

    Args:
        path: the file.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is not TOML in UTF-8, is nested too deeply, or has a number that is
            infinite, not a number, or an integer beyond 64 bits.
    """
    try:
        entries = tomllib.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        _check_numbers(entries)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return entries


def _check_numbers(value):
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_numbers(item)
    elif isinstance(value, int) and not -_MAX_INTEGER <= value < _MAX_INTEGER:
        raise ValueError("it has an integer beyond 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"it has a number that is not finite, {value}")


def read_settings(entries, known, place):
    """Returns the values of settings of a command, and a sentence for each mistake.

    Args:
        entries: dictionary, as TOML gives it.
        known: dictionary: name of a setting -> its dataclass field.
        place: how the table is called in sentences.
    """
    values, found = {}, _unknown_keys(entries, known, place)
    for key in filter(known.__contains__, entries):
        kind = kind_of(known[key])
        try:
            values[key] = kind.from_toml(entries[key])
        except ValueError:
            found.append(f"{key} in {place} must be {kind}. Received: {entries[key]!r}")
    return values, found


def read_table(table_class, entries, path=""):
    """Returns a table as a dataclass, `None` if there are mistakes, and a sentence for each.

    Keys are names of fields; those without a default must be there. A field is a text, a number, a
    `COUNT`, a `RATE`, a list of these, a dataclass, a list of them, or `dict[Literal[...], class]`.

    Args:
        table_class: a dataclass. If it has a method `problems(place)`, the sentences that it
            returns are mistakes too; a class method `read(entries, place)` is called in place of
            this function.
        entries: dictionary, as TOML gives it.
        path: keys that lead to the table, with dots between them.
    """
    if hasattr(table_class, "read"):
        return table_class.read(entries, _place(path))
    hints = typing.get_type_hints(table_class, include_extras=True)
    known = {one.name: one for one in dataclasses.fields(table_class) if "own" not in one.metadata}
    values, found = {}, _unknown_keys(entries, known, _place(path))
    for key, field in known.items():
        if key in entries:
            values[key] = _value(hints[key], entries[key], f"{path}.{key}".lstrip("."), found)
        elif field.default is dataclasses.MISSING:
            found.append(f"{_place(path)} must have {key}, {_phrase(hints[key])}. Received: none")
    if not found:
        table = table_class(**values)
        found = table.problems(_place(path)) if hasattr(table, "problems") else []
    return (None if found else table), found


def _place(path):
    return f"[{path}]" if path else "the file"


def _unknown_keys(entries, known, place):
    return [
        f"{place} has an unknown key, {key!r}; the nearest known key is {nearest(key, known)!r}. "
        f"Received: {shown if len(shown) < _SHOWN else key}"
        for key, shown in ((key, f"{key}={entries[key]!r}") for key in entries)
        if key not in known
    ]


def _value(hint, value, path, found):
    """Returns a value of a table, as dataclasses where it is of tables; adds its mistakes."""
    kind, parts = _parts(hint)
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        table, mistakes = read_table(kind, value, path)
        found += mistakes
        return table
    if kind is dict and isinstance(value, dict):
        names = typing.get_args(parts[0])
        found += _unknown_keys(value, names, _place(path))
        return {
            name: _value(parts[1], one, f"{path}.{name}", found)
            for name, one in value.items()
            if name in names
        }
    if kind is list and dataclasses.is_dataclass(parts[0]) and _are_tables(value):
        return [_value(parts[0], one, f"{path}.{n}", found) for n, one in enumerate(value, 1)]
    if not _is_right(hint, value):
        above, _, key = path.rpartition(".")
        found.append(f"{key} in {_place(above)} must be {_phrase(hint)}. Received: {value!r}")
    return value


def _are_tables(value):
    return isinstance(value, list) and value and all(isinstance(item, dict) for item in value)


def _parts(hint):
    """Returns what a type is at its core, and what it says of it."""
    kind, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if type(None) in parts:  # which TOML cannot say
        return _parts(parts[0])
    return (parts[0], parts[1:]) if kind is typing.Annotated else (kind, parts)


def _is_right(hint, value):
    kind, parts = _parts(hint)
    if kind is list:
        if not isinstance(value, list) or not (value or parts[0] in _KINDS):
            return False  # only texts and numbers of any size may be none
        return all(_is_right(parts[0], one) for one in value)
    return kind in _KINDS and type(value) in _KINDS[kind][0] and (not parts or parts[1](value))


def _phrase(hint, several=False):
    kind, parts = _parts(hint)
    if kind is list:
        return f"a list of {_phrase(parts[0], several=True)}"
    _, one, more = _KINDS.get(kind, ((), "a table", "tables"))
    return (more if several else one) + (parts[0] if kind in _KINDS and parts else "")
