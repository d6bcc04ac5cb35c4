"""Files: written whole or not at all, and JSON sealed by a hash where others build on it."""

import hashlib
import json
import os
import pathlib

from keras_tupe._json_file import read_json_object
from keras_tupe._new_folder import write_bytes

_SEAL = "seal"
_TAIL = ',\n "' + _SEAL + '": "{}"\n}}\n'
_TAIL_BYTES = len(_TAIL.format("0" * 64))


def file_hash(path, counts=lambda inside: True):
    """The SHA-256 of a file, or of all files in a folder with their names, in hexadecimal digits.

    Args:
        path: path of the file or the folder.
        counts: function of the path of a file in the folder -> whether it counts. Defaults to all.
    """
    folder = pathlib.Path(path)
    if folder.is_dir():
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        inside = {file.relative_to(folder): file for file in files}
        lines = [f"{x.as_posix()} {file_hash(file)}\n" for x, file in inside.items() if counts(x)]
        return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path, record):
    """Writes a JSON file that is either complete, on the disk, or not there.

    Args:
        path: the file.
        record: dictionary for JSON.
    """
    write_bytes(path, (json.dumps(record, indent=1) + "\n").encode("utf-8"))


def write_sealed_json(path, record):
    """As `write_json`, with the hash of its own bytes as `seal`; `record` is not empty."""
    write_bytes(path, _sealed(json.dumps(record, indent=1).removesuffix("\n}").encode("utf-8")))


def read_sealed_json(path):
    """The dictionary that `write_sealed_json` wrote; ValueError if a single bit is another."""
    record = read_json_object(path)
    if not is_sealed(pathlib.Path(path).read_bytes()):
        raise ValueError("it is not what was written")
    del record[_SEAL]
    return record


def is_sealed(content):
    """Whether the bytes of a file are, to the bit, what `write_sealed_json` wrote."""
    return content == _sealed(content[:-_TAIL_BYTES])


def _sealed(body):
    """The bytes of a sealed file: all of it but the end, and the end, which has the hash of it."""
    return body + _TAIL.format(hashlib.sha256(body).hexdigest()).encode("ascii")
