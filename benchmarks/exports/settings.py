"""The settings of `benchmarks.exports`."""

import dataclasses

from benchmarks.harness.checks import SIZES, Lists, wrong_items, wrong_numbers
from training.command.checks import no_folder
from training.command.settings import setting, wrong_fields
from training.command.without_keras import method_names

_ROUNDS = ("at least 10", lambda value: value >= 10)  # for an interval of the median


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.exports`."""

    positions: tuple = setting(("tupe_r",), "Position methods beside absolute.")
    lengths: tuple = setting((128, 512), "Lengths in tokens, each >= 1.")
    batches: tuple = setting((1, 16), "Rows per call, each >= 1.")
    rounds: int = setting(60, "Counted calls of each encoder.", rule=_ROUNDS)
    size: str = setting("mini", "Size of the encoders.", one_of=SIZES)
    out: str = setting("benchmarks/results", "Folder to write exports.json and exports.md to.")

    NUMBERS = ("lengths", "batches")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        return [
            *wrong_items(self, {"positions": method_names()}),
            *wrong_numbers(self, "lengths", "batches"),
            *wrong_fields(self).values(),
            *no_folder(self.out),
        ]
