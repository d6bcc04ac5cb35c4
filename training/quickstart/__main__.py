"""TUPE beside BERT's absolute positions, from raw text to an exported model, in minutes.

    python -m training.quickstart
    python -m training.quickstart --corpus my.txt --positions absolute,tupe_a,tupe_r

Reads real text (the docstrings of the installed packages, unless told otherwise), trains a
vocabulary, pre-trains one encoder per positional method on the same data, masks and steps,
fine-tunes each on a task that needs word order, exports the best as a SavedModel, loads that in
another process and asks it questions. Writes everything to `--out`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import difflib
import pathlib
import sys
import time

from keras_tupe import SIZES, positions
from keras_tupe.export import check_destination
from training.command.checks import no_folder
from training.command.folder_lock import FolderLock
from training.command.settings import parse, setting
from training.command.shell import sentences
from training.command.tables import table
from training.quickstart import data as quickstart_data
from training.quickstart import export
from training.quickstart import models as quickstart_models


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the quickstart."""

    corpus: str | None = setting(
        None, "Text file (UTF-8, blank line between documents) or folder of text files."
    )
    positions: str = setting(
        "none,absolute,tupe_r", "Positional methods, or .py files that define one, by commas."
    )
    minutes: float | None = setting(
        None, "Time for training all methods, minutes > 0; without it 2,200 + 400 steps each."
    )
    size: str = setting("tiny", f"Size of the encoders: {', '.join(SIZES)}.")
    seed: int = setting(0, "Seed of weights, order and masks, an integer >= 0.")
    out: str = setting("saved_models/quickstart", "Folder to write.")

    def problems(self):
        """Returns a sentence for each mistake."""
        found = []
        if self.minutes is not None and not self.minutes > 0:
            found.append(f"--minutes must be above 0. Received: {self.minutes}")
        if self.size not in SIZES:
            near = difflib.get_close_matches(self.size, SIZES, n=1, cutoff=0)[0]
            found.append(
                f"--size must be one of {list(SIZES)}; the nearest is {near!r}. "
                f"Received: {self.size!r}"
            )
        if self.seed < 0:
            found.append(f"--seed must be an integer >= 0. Received: {self.seed}")
        if self.corpus is not None and not pathlib.Path(self.corpus).exists():
            found.append(
                "--corpus must be a text file or a folder of text files. Received: "
                f"{self.corpus!r}, where there is nothing"
            )
        try:
            method_names(self.positions)
            check_destination(self.out)
        except ValueError as error:
            found.append(str(error))
        else:
            found += no_folder(self.out)
        return found


def method_names(text):
    """Returns the names of the methods in a list by commas; loads those that are files."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--positions must name at least one method. Received: {text!r}")
    names = [positions.load_file(name) if name.endswith(".py") else name for name in names]
    for name in names:
        positions.get(name)
    return list(dict.fromkeys(names))


def report(results, data):
    """Prints the table of the run."""
    rows = [
        [
            result.position,
            f"{result.loss:.2f}",
            f"{result.accuracy:.1%}",
            f"{result.word_order:.2%} +- {result.interval:.1%}",
            f"{result.parameters:,}",
            f"{result.seconds:.0f} s",
        ]
        for result in results
    ]
    header = ["method", "held-out loss", "masked accuracy", "word order", "parameters", "time"]
    print("\n" + table(header, rows))
    print(
        f"The most frequent piece alone would have a masked accuracy of {data.frequent_share:.1%}."
    )
    if any(result.position == "none" for result in results):
        print(
            "Without positions both sentences of a word-order pair are the same bag of words and "
            "get the same answer: one of the two is right, hence 50 %, by necessity."
        )


def train_and_publish(settings, names, command):
    """Trains one model per method and writes the folder of the run.

    Args:
        settings: a `Settings` without problems.
        names: list of the methods.
        command: the command line, for the card.

    Returns:
        `(results, data, best)`: list of `Result`, the `QuickstartData`, and the exported result.
    """
    documents = quickstart_data.load_documents(settings.corpus)
    data = quickstart_data.prepare(documents, quickstart_models.BATCH_SIZE, settings.seed)
    facts = {key.replace("_", " "): value for key, value in data.facts.items()}
    print("\n".join(f"{key:>20}: {value}" for key, value in facts.items()))

    steps, task_steps = quickstart_models.STEPS, quickstart_models.TASK_STEPS
    if settings.minutes is not None:
        steps, task_steps = quickstart_models.steps_for(settings.minutes, names, data, settings)
    results, models, biases = [], {}, {}
    for name in names:
        result, models[name] = quickstart_models.run(name, data, settings, steps, task_steps)
        results.append(result)
        bias = export.position_bias(models[name])
        if bias is not None:
            biases[name] = bias

    best = min(results, key=lambda result: result.loss)
    model = models[best.position]
    export.publish(settings, data, results, best, model, biases, command)
    return results, data, best


def main(arguments=None):
    """Runs the command line."""
    started = time.monotonic()
    settings = parse(Settings, arguments, description=__doc__)
    names = method_names(settings.positions)
    command = " ".join(["python -m training.quickstart", *(arguments or sys.argv[1:])])
    with sentences("quickstart", "Nothing was written."), FolderLock(settings.out, beside=True):
        results, data, best = train_and_publish(settings, names, command)
    report(results, data)
    print(
        f"\nexported {best.position} to {settings.out} ({time.monotonic() - started:.0f} s in all)"
    )
    print(f'ask it more: python -m training.query {settings.out} --fill "a [MASK] of integers"')


if __name__ == "__main__":
    main()
