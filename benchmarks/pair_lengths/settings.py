"""The settings of `benchmarks.pair_lengths`."""

import dataclasses

from benchmarks.harness.checks import SIZES, Lists, wrong_items
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields
from training.command.without_keras import method_names

TASKS = ("scan", "copy")


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.pair_lengths`."""

    task: str = setting(
        "copy",
        "Pairs: scan, the length split of SCAN, or copy, distinct words in their order.",
        one_of=TASKS,
    )
    scan: str | None = setting(
        None, "Folder of SCAN's length-train.txt and length-test.txt, for --task scan."
    )
    positions: tuple = setting(
        ("none", "absolute", "sinusoidal", "rope", "t5", "tupe_r"), "Position methods."
    )
    baseline: str = setting("sinusoidal", "The one of them that others are compared with.")
    seeds: int = setting(5, "Runs of each method.", rule=COUNT)
    steps: int = setting(2000, "Steps of each run.", rule=COUNT)
    batch_size: int = setting(16, "Pairs per step.", rule=COUNT)
    learning_rate: float = setting(2e-3, "Highest learning rate, > 0.")
    size: str = setting("tiny", "Size of encoder and decoder.", one_of=SIZES)
    runs: str = setting("runs/pair_lengths", "Folder of pairs and runs; they go on from there.")
    out: str = setting("benchmarks/results/pair-lengths", "Folder to write TASK.json and .md to.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = [
            *wrong_fields(self).values(),
            *wrong_items(self, {"positions": method_names()}),
            *no_folder(self.out),
            *no_folder(self.runs, "--runs"),
        ]
        if self.baseline not in self.positions:
            found.append(
                f"--baseline must be one of --positions: {', '.join(self.positions)}. "
                f"Received: --baseline {self.baseline}"
            )
        if (self.task == "scan") != (self.scan is not None):
            found.append(
                "--task scan needs --scan FOLDER, with length-train.txt and length-test.txt; no "
                f"other task takes it. Received: --task {self.task}, --scan {self.scan}"
            )
        return found
