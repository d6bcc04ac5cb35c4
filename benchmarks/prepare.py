"""Time and memory of `training.prepare` on a text, and on twice the text.

    python -m benchmarks.prepare --input corpus.txt.xz --out benchmarks/results/prepare.json

The second text holds every document twice, the second time behind another first sentence, so that
no document is a duplicate. Each is prepared in a process of its own, from compressed text to the
checked data set, vocabulary included; the words of its own table say where the time went.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from benchmarks._child import ROOT
from benchmarks._machine import machine, source
from keras_tupe.data import find_sources, read_source
from training.command.report_files import replaced_text

_SENTENCE = "This is another reading of the same text. "


def twice(inputs, path):
    """Writes the documents of the inputs, and all of them once more behind a sentence."""
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


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", nargs="+", required=True, help="As for training.prepare.")
    parser.add_argument("--options", default="", help="More options for it, in one string.")
    parser.add_argument("--out", help="JSON file to write.")
    settings = parser.parse_args(arguments)
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.prepare", *arguments]),
        "source": source(),
        "machine": machine(),
    }
    options = shlex.split(settings.options)
    with tempfile.TemporaryDirectory() as folder:
        doubled = pathlib.Path(folder) / "twice.txt"
        twice(settings.input, doubled)
        inputs = [str(pathlib.Path(name).absolute()) for name in settings.input]
        record["text"] = measure(inputs, f"{folder}/one", options)
        record["twice_the_text"] = measure([str(doubled)], f"{folder}/two", options)
    text = json.dumps(record, indent=1)
    print(text)
    if settings.out:
        replaced_text(settings.out, text + "\n")


if __name__ == "__main__":
    main()
