"""Damaged values: what a hand, another program or an attacker may leave in a JSON or TOML file."""

import json
import math

_RAW = "@raw@"  # stands for a text that Python's writer would not write
DEEP = (99, 2_000, 10_000)


def nested(depth, opening="[", closing="]"):
    """Returns the text of a list in a list in a list ..."""
    return opening * depth + closing * depth


VALUES = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**40, 2**63, 2**64, -(2**63), 10**400),
    *(0.5, -0.0, 1e308, 1e-320, math.nan, math.inf, -math.inf, 4.9e-324),
    *("", "0", "1", "x", "a\0b", "\ud800", "\U0001f600", "x" * 5_000, "nan", "a\nb", " ", "##"),
    *("../../../etc/passwd", "/etc/passwd", ".", "..", "float32", "mixed_float16", "[PAD]"),
    *([], [[]], {}, {"": {}}, [None], [0], [True], {"class_name": "x"}, [[0, 0]], ["a", "b"]),
    *({"class_name": [], "config": []}, {"config": {"config": None}}, [{}], [1e999], [10**400]),
)
_TEXTS = (
    *(nested(depth) for depth in DEEP),
    *(nested(depth, '{"a":', "}").replace(":}", ":0}", 1) for depth in DEEP),
    *("9" * 5_000, "1e999", "-1e999", "[" * 10_000, "\x00", '"\x01"', '"\\u0000"', "'x'"),
)
_ENDS = (b"", b"\x00", b"\xff", b"}", b"\n{}", b"\xef\xbb\xbf", b"[" * 10_000)


def places(value, path=()):
    """Returns the paths of all values inside of a value, itself included."""
    found = [path]
    if isinstance(value, dict):
        items = value.items()
    else:
        items = enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def at(value, path):
    """Returns the value at a path."""
    for key in path:
        value = value[key]
    return value


def replaced(value, path, new):
    """Returns a copy with another value at a path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def changed(value, random):
    """Returns a copy with one place changed: another value, one less, one more, another key."""
    path = random.choice(places(value))
    old = at(value, path)
    kind = random.randrange(10)
    if kind < 5:
        return replaced(value, path, random.choice(VALUES))
    if kind == 5:
        return replaced(value, path, random.choice([[old], {"x": old}, str(old)]))
    if kind == 6:
        return replaced(value, path, at(value, random.choice(places(value))))
    if kind == 7 and isinstance(old, int | float):
        return replaced(value, path, random.choice([-old, old + 1, old - 1, bool(old), float(old)]))
    if isinstance(old, dict) and old:
        key, copy = random.choice(list(old)), dict(old)
        item = copy.pop(key)
        if kind == 8:
            copy[random.choice(["", "x", key.upper(), key + "\0"])] = item
        return replaced(value, path, copy)
    if isinstance(old, list) and old:
        index = random.randrange(len(old))
        less, more = old[:index] + old[index + 1 :], [*old, old[index]]
        return replaced(value, path, random.choice([less, more, old[::-1]]))
    if isinstance(old, str) and old:
        index = random.randrange(len(old))
        return replaced(
            value, path, old[:index] + random.choice(["", "\0", "é", " "]) + old[index:]
        )
    return replaced(value, path, random.choice(VALUES))


def changed_json(content, random):
    """Returns the bytes of a JSON file that was changed at one place, or at its end."""
    value = json.loads(content)
    if random.random() < 0.15:
        value = replaced(value, random.choice(places(value)), _RAW)
        text = json.dumps(value).replace(json.dumps(_RAW), random.choice(_TEXTS), 1)
        return text.encode("utf-8", "surrogatepass")
    if random.random() < 0.05:
        return content + random.choice(_ENDS)
    return json.dumps(changed(value, random)).encode()


def changed_json_lines(content, random):
    """Returns the bytes of a file of JSON lines of which one was changed."""
    lines = content.splitlines()
    index = random.randrange(len(lines))
    lines[index] = changed_json(lines[index], random)
    return b"\n".join(lines) + b"\n"


def toml(value):
    """Returns a value as TOML writes it inside of a line.

    Raises:
        TypeError: for `None`, which TOML has not.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, repr(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value.replace("\x7f", ""))
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        items = (f"{json.dumps(str(key))} = {toml(item)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    raise TypeError("TOML has no null")


def changed_toml(content, random):
    """Returns the bytes of a TOML file that was changed at one place."""
    import tomllib

    value = tomllib.loads(content.decode())
    value = changed(value, random)
    value = value if isinstance(value, dict) else {"x": value}
    try:
        lines = [f"{json.dumps(str(key))} = {toml(item)}" for key, item in value.items()]
    except TypeError:
        lines = ["x = "]
    text = "\n".join(lines) + "\n"
    if random.random() < 0.05:
        text += f"deep = {nested(random.choice(DEEP))}\n"
    return text.encode("utf-8", "surrogatepass")
