"""The file of a record outside the package, carried by a preset: source, name and SHA-256."""

import dataclasses
import hashlib
import json
import pathlib

from keras_tupe._json_file import read_json_object


def sha256_of(source):
    """Returns the SHA-256 of bytes, hexadecimal."""
    return hashlib.sha256(source).hexdigest()


@dataclasses.dataclass(frozen=True)
class CarriedFile:
    """How presets carry the files of records of one kind."""

    noun: str
    record: str
    loader: str
    option: str

    def carry(self, folder, name, source):
        """Puts the file of a record into a preset; without a source, removes another's mention."""
        record = pathlib.Path(folder) / self.record
        if source is None:
            record.unlink(missing_ok=True)
            return
        record.with_name(f"{name}.py").write_bytes(source)
        text = json.dumps({"file": f"{name}.py", "sha256": sha256_of(source)}, indent=4)
        record.write_text(text, encoding="utf-8")

    def of(self, folder):
        """Returns path and SHA-256 of the file that a preset carries; `(None, None)` if none."""
        folder = pathlib.Path(folder)
        if not (folder / self.record).is_file():
            return None, None
        found = read_json_object(folder / self.record)
        file, sha256 = found.get("file"), found.get("sha256")
        is_name = isinstance(file, str) and pathlib.Path(file).name == file
        if not isinstance(sha256, str) or not is_name:
            raise ValueError(
                f"A preset's {self.record} must hold the name of a file beside it and its SHA-256. "
                f"Save the preset again. Received: {found!r}"
            )
        return folder / file, sha256

    def check_unchanged(self, path, source):
        """Refuses the content of a file that a preset carries and that was changed since."""
        file, sha256 = self.of(path.parent)
        if file is not None and file.name == path.name and sha256 != sha256_of(source):
            raise ValueError(
                f"The file of the preset's {self.noun} was changed after the preset was saved: its "
                f"SHA-256 is {sha256_of(source)}, and {self.record} says {sha256}. Get the preset "
                "again, or, if you trust the change, load a copy of the file from another folder. "
                f"Received: path={str(path)!r}"
            )

    def how_to_load(self, folder, name):
        """Returns sentences on how the record of a preset becomes known, where it is not."""
        path, sha256 = self.of(folder)
        unknown = f"The preset's {self.noun} is not known here."
        if path is None or path.stem != name:
            return (
                f"{unknown} Name the Python file that defines it: {self.option} on the command "
                f"line, `{self.loader}` in Python."
            )
        return (
            f"{unknown} The preset carries the Python file that defines it, which is not run "
            f"unless you ask for it. Read it, and if you trust it, load it: {self.option} {path} "
            f"on the command line, `{self.loader}({str(path)!r})` in Python. Its SHA-256 is "
            f"{sha256}."
        )
