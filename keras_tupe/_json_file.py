"""JSON that anybody may have written: read as a value, or refused with a reason."""

import json
import os
import pathlib

MAX_BYTES = 64 * 2**20  # settings and records take kilobytes
MAX_DEPTH = 100


def parse_json(text):
    """Returns the value of a JSON text; one that is nested too deeply is a `ValueError` too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path):
    """Returns the value in a small JSON file: settings, a record, a report."""
    with pathlib.Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size  # to read more takes room for it
        content = file.read(min(size, MAX_BYTES) + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    value = parse_json(content.decode("utf-8"))
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for parent in level
            if isinstance(parent, list | dict)
            for item in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return value
    raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")


def read_json_object(path):
    """Returns the dictionary in a small JSON file."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}, not a dictionary")
    return value
