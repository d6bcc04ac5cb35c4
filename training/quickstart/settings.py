"""The settings of `training.quickstart`, and the positional methods that they name."""

import dataclasses
import os

from training.command.checks import no_folder, not_there
from training.command.settings import COUNT_OR_ZERO, POSITIVE, setting, wrong_fields
from training.command.without_keras import method_names as known_methods
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe.export.folder import check_destination
    from keras_tupe.models.sizes import SIZES

STEPS, TASK_STEPS = 2200, 400  # of pre-training, of the word-order task


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the quickstart."""

    corpus: str | None = setting(
        None, "Text file (UTF-8, blank line between documents) or folder of text files."
    )
    positions: str = setting(
        "none,absolute,tupe_r", "Positional methods, or .py files that define one.", by_commas=True
    )
    minutes: float | None = setting(
        None,
        "Time for the whole command, about, minutes; without it "
        f"{STEPS:,} + {TASK_STEPS} steps of each.",
        rule=POSITIVE,
    )
    size: str = setting("tiny", "Size of the encoders.", one_of=SIZES)
    seed: int = setting(0, "Seed of weights, order and masks.", rule=COUNT_OR_ZERO)
    out: str = setting("saved_models/quickstart", "Folder to write.")

    def names(self):
        """Returns the names of the methods; loads those that are files."""
        return method_names(self.positions)

    def in_words(self):
        """Returns what a run is about to do, and why, in five lines."""
        names = self.names()
        corpus = self.corpus or "docstrings of the installed packages"
        steps = f"{STEPS:,} steps" if self.minutes is None else "as many steps as the time allows"
        count = "1 encoder" if len(names) == 1 else f"{len(names)} encoders"
        return "\n".join(
            [
                f"1. text: {corpus}; a tenth of the documents is held out to test on",
                "2. vocabulary: 8,000 word pieces, to cut the text into rows of tokens",
                f"3. {count}, {', '.join(names)}: same rows, masks and {steps}; only positions "
                "differ",
                "4. word order: each learns to find exchanged words, which a bag of words cannot "
                "show",
                f"5. the best is exported to {self.out}, loaded by another process, and questioned",
            ]
        )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = [*wrong_fields(self).values()]
        if self.corpus is not None and not os.path.exists(self.corpus):
            found.append(
                "--corpus must be a text file or a folder of text files. Received: "
                f"{not_there(self.corpus)}"
            )
        try:
            self.names()
        except ValueError as error:
            found.append(str(error))
        try:
            check_destination(self.out)
        except ValueError as error:
            return [*found, str(error)]
        return found + no_folder(self.out)


def method_names(text):
    """Returns the names of the methods in a list by commas; loads those that are files."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--positions must name at least one method. Received: {text!r}")
    if not set(names) <= set(known_methods()):  # else no record is needed
        from keras_tupe import positions

        names = [positions.load_file(name) if name.endswith(".py") else name for name in names]
        for name in names:
            positions.get(name)
    return list(dict.fromkeys(names))
