"""The settings of `benchmarks.generation`."""

import dataclasses

from benchmarks.harness.checks import SIZES, Lists, wrong_items, wrong_numbers
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields
from training.command.without_keras import method_names

_ROUNDS = ("at least 5", lambda value: value >= 5)


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.generation`."""

    positions: tuple = setting(("rope", "alibi", "tupe_r"), "Position methods beside absolute.")
    batches: tuple = setting((1, 8), "Texts that are written at once, each >= 1.")
    length: int = setting(256, "Tokens of a whole text.", rule=COUNT)
    prompt: int = setting(16, "Tokens of its prompt, below --length.", rule=COUNT)
    rounds: int = setting(9, "Counted calls of each model.", rule=_ROUNDS)
    xla: bool = setting(False, "On TensorFlow, compile by XLA. JAX always does.")
    size: str = setting("mini", "Size of the models.", one_of=SIZES)
    out: str = setting(
        "benchmarks/results", "Folder to write generation.json and generation.md to."
    )

    NUMBERS = ("batches",)

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = [
            *wrong_items(self, {"positions": method_names()}),
            *wrong_numbers(self, "batches"),
            *wrong_fields(self).values(),
            *no_folder(self.out),
        ]
        if not found and self.prompt >= self.length:
            found.append(
                "--prompt must be below --length, so that something is written. Received: "
                f"--prompt {self.prompt} --length {self.length}"
            )
        return found
