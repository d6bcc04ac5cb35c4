"""Time and memory of `training.prepare` on a text, and on twice the text.

    python -m benchmarks.prepare --input corpus.txt.xz --out benchmarks/results/prepare.json

The second text holds every document twice, the second time behind another first sentence, so that
no document is a duplicate. Each is prepared in a process of its own, from compressed text to the
checked data set, vocabulary included; the words of its own table say where the time went.
"""

import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from benchmarks.harness.process import ROOT
from training.command.settings import parse, setting

_SENTENCE = "This is another reading of the same text. "


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the benchmark."""

    input: tuple = setting((), "Texts, as for training.prepare.", texts=True)
    options: str = setting("", "More options for it, in one string.")
    out: str | None = setting(None, "JSON file to write.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        return [] if self.input else ["--input must name at least one text. Received: none"]


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "prepare")
    from benchmarks.harness import provenance, report

    record = provenance.origin("prepare", arguments)
    options = shlex.split(settings.options)
    with tempfile.TemporaryDirectory() as folder:
        doubled = pathlib.Path(folder) / "twice.txt"
        twice(settings.input, doubled)
        inputs = [str(pathlib.Path(name).absolute()) for name in settings.input]
        record["text"] = measure(inputs, f"{folder}/one", options)
        record["twice_the_text"] = measure([str(doubled)], f"{folder}/two", options)
    report.print_json(record, settings.out)


def twice(inputs, path):
    """Writes the documents of the inputs, and all of them once more behind a sentence."""
    from keras_tupe.data import find_sources, read_source

    with path.open("w", encoding="utf-8") as file:
        for prefix in ("", _SENTENCE):
            for one in find_sources(inputs):
                for document in read_source(one):
                    file.write(f"{prefix}{document.text}\n\n")


def measure(inputs, out, options):
    """Runs the command and returns its facts.

    Returns:
        Dictionary of `seconds`, `peak_mebibytes`, the `stages` (seconds each), and the number of
        `documents`, `words` and `rows`.
    """
    command = [sys.executable, "-m", "training.prepare", "--input", *inputs, "--out", out, *options]
    start = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)  # of this process alone
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    if process.returncode:
        sys.exit("prepare: the command failed; see above")
    record = json.loads((pathlib.Path(out) / "preparation.json").read_text("utf-8"))
    table = printed[printed.index("| stage") :].splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")] for line in table if line.startswith("|")]
    splits = record["splits"].values()
    return {
        "seconds": round(seconds, 1),
        "peak_mebibytes": usage.ru_maxrss // 1024,
        "stages": {cell[1]: float(cell[2]) for cell in cells},
        **{name: sum(s[name] for s in splits) for name in ("documents", "words", "rows")},
    }


if __name__ == "__main__":
    main()
