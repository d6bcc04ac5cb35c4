"""The result files: reading them, and which of them a page has shown."""

import csv
import fnmatch
import json
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "results"


class ResultFiles:
    """The files below a folder of results, by their paths in it.

    Args:
        folder: a path.
    """

    def __init__(self, folder=FOLDER):
        self.folder = pathlib.Path(folder)
        self.names = sorted(
            file.relative_to(self.folder).as_posix()
            for file in self.folder.rglob("*")
            if file.is_file()
        )
        self.shown = set()

    def matching(self, pattern):
        """Returns the paths that match, of `*` and the like.

        Raises:
            LookupError: if there are none.
        """
        found = [name for name in self.names if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise LookupError(
                "A marker must name a file of benchmarks/results, which the benchmark or command "
                f"that it is from writes. Received: {pattern!r}"
            )
        return found

    def text(self, name):
        """Returns the text of a file."""
        (name,) = self.matching(name)
        return (self.folder / name).read_text(encoding="utf-8")

    def record(self, name):
        """Returns the content of a JSON file, or `{"rows": ...}` of a table in CSV.

        Raises:
            ValueError: if the file is neither.
        """
        text = self.text(name)
        try:
            if not name.endswith(".csv"):
                return json.loads(text)
            lines = list(csv.DictReader(text.splitlines()))
            return {"rows": [{key: _number(text) for key, text in line.items()} for line in lines]}
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"A result file must be JSON, or a table of numbers in CSV. Received: {name!r}"
            ) from error

    def not_shown(self):
        """Returns the paths of which no table and no report has been made."""
        return [name for name in self.names if name not in self.shown]


def _number(text):
    return int(text) if text.isdigit() else float(text)
