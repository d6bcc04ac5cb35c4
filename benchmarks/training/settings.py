"""The settings of `benchmarks.training`."""

import dataclasses

from benchmarks.harness.checks import PRECISIONS, SIZES, Lists, wrong_items, wrong_numbers
from benchmarks.harness.environments import PEER, folder_of
from training.command.checks import COUNT, no_folder, out_of_range
from training.command.settings import setting
from training.command.without_keras import method_names

FEWER_TOKENS = {"base": 1024, "large": 512}
LARGE_VOCABULARY = {"base": 30522, "large": 30522}
DEFAULT_TOKENS, DEFAULT_VOCABULARY = 2048, 8192
SPECIAL_TOKENS = 5
POSITIONS = ("absolute", "tupe_r", "qkr_4")
VOCABULARY_SIZE = (
    f"above the {SPECIAL_TOKENS} special tokens",
    lambda value: value > SPECIAL_TOKENS,
)


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.training`."""

    sizes: tuple = setting(("mini",), f"Sizes of the model: {', '.join(SIZES)}.")
    positions: tuple = setting(POSITIONS, "Position methods; the first is the baseline.")
    precisions: tuple = setting(PRECISIONS, "Precisions.")
    lengths: tuple = setting((128, 512), "Sequence lengths in tokens, each >= 1.")
    rounds: int = setting(11, "Interleaved rounds, >= 1.")
    tokens: int | None = setting(
        None, f"Tokens of a batch, >= 1. Default: {DEFAULT_TOKENS}; {FEWER_TOKENS}."
    )
    vocabulary_size: int | None = setting(
        None, f"Number of tokens known. Default: {DEFAULT_VOCABULARY}; {LARGE_VOCABULARY}."
    )
    peers: bool = setting(True, "Time KerasHub, torch too.")
    peer_environment: str = setting(str(PEER.default_folder()), "Made if it is not there.")
    out: str = setting(
        "benchmarks/results/training", "Folder to write training.json and training.md to."
    )

    NUMBERS = ("lengths",)

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        known = {"sizes": SIZES, "positions": method_names(), "precisions": PRECISIONS}
        ranges = {"rounds": COUNT, "tokens": COUNT, "vocabulary_size": VOCABULARY_SIZE}
        found = [
            *wrong_items(self, known),
            *wrong_numbers(self, "lengths"),
            *out_of_range(self, ranges).values(),
            *no_folder(self.out),
        ]
        if self.peers:
            found += filter(None, [PEER.problem(folder_of(self.peer_environment))])
        return found

    def tokens_of(self, size):
        """Returns the tokens of a batch of a size."""
        return self.tokens or FEWER_TOKENS.get(size, DEFAULT_TOKENS)

    def vocabulary_of(self, size):
        """Returns the vocabulary's size of a size."""
        return self.vocabulary_size or LARGE_VOCABULARY.get(size, DEFAULT_VOCABULARY)
