"""What a preset computes, in one number."""

import hashlib
import pathlib

from keras_tupe.data import file_hash

_SETTINGS = ("config.json", "preprocessor.json", "tokenizer.json")


def preset_digest(folder, position_file=None):
    """Returns a hash of all that makes the answers of a preset, hexadecimal.

    Args:
        folder: the preset: settings, weights and vocabulary count, by content.
        position_file: the Python file that defines its positional method, or `None`.
    """
    folder = pathlib.Path(folder)
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = path.relative_to(folder)
        if path.suffix == ".h5" or place.parts[0] == "assets" or str(place) in _SETTINGS:
            digest.update(f"{place.as_posix()} {file_hash(path)}\n".encode())
    if position_file is not None:
        digest.update(file_hash(position_file).encode())
    return digest.hexdigest()
