"""The settings of `benchmarks.windows`."""

import dataclasses

from benchmarks.harness.checks import Lists, wrong_numbers
from benchmarks.harness.environments import PEER, folder_of
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields
from training.command.without_keras import method_names

SIZES = {"num_layers": 4, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024}
VOCABULARY_SIZE = 8192
PEER_LABEL = "Longformer"


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.windows`."""

    positions: tuple = setting(("absolute", "tupe_r"), "Position methods, each by its name.")
    lengths: tuple = setting((2048, 4096, 8192, 16384), "Sequence lengths in tokens, each >= 1.")
    window: int = setting(256, "Tokens to each side that a token sees.", rule=COUNT)
    rounds: int = setting(3, "Interleaved rounds.", rule=COUNT)
    remat: bool = setting(False, "Compute blocks again in the backward pass.")
    peer: bool = setting(True, "Time transformers' Longformer too.")
    peer_environment: str = setting(str(PEER.default_folder()), "Made if it is not there.")
    out: str = setting(
        "benchmarks/results/windows", "Folder to write windows.json and windows.md to."
    )

    NUMBERS = ("lengths",)

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        known = method_names()
        unknown = [name for name in self.positions if name not in known]
        found = [f"--positions: expected some of {known}. Received: {name!r}" for name in unknown]
        problem = PEER.problem(folder_of(self.peer_environment)) if self.peer else None
        return [
            *found,
            *wrong_numbers(self, "lengths"),
            *wrong_fields(self).values(),
            *([problem] if problem else []),
            *no_folder(self.out),
        ]
