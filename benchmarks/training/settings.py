"""The settings of `benchmarks.training`."""

import dataclasses
import re

from benchmarks.harness.checks import PRECISIONS, SIZES, Lists, wrong_items
from benchmarks.harness.environments import JAX_PEER, PEER, folder_of
from benchmarks.training.systems import PEERS
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields
from training.command.without_keras import method_names
from training.machine.settings import SWITCHES

ALL_SIZES = ("tiny", "mini", "base")
SHAPES = {"tiny": ("32x32", "64x32"), "base": ("8x128", "2x512"), "large": ("4x128", "1x512")}
DEFAULT_SHAPES = ("16x128", "4x512")
LARGE = ("base", "large")
ROUNDS, FEW_ROUNDS = 11, 3
STEPS_PER_TURN = {"tiny": 10}  # what a clock tells of one such step is not much
DEFAULT_VOCABULARY, LARGE_VOCABULARY = 8192, 30522
SPECIAL_TOKENS = 5
POSITIONS = ("absolute", "tupe_r", "qkr_4")
VOCABULARY_SIZE = (
    f"above the {SPECIAL_TOKENS} special tokens",
    lambda value: value > SPECIAL_TOKENS,
)
_SHAPE = re.compile(r"([1-9][0-9]*)x([1-9][0-9]*)")


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.training`."""

    sizes: tuple = setting(ALL_SIZES, f"Sizes of the model, of {', '.join(SIZES)}.")
    positions: tuple = setting(
        POSITIONS, f"Position methods; the first is the baseline. {LARGE} take the first two."
    )
    precisions: tuple = setting(PRECISIONS, "Precisions.")
    shapes: tuple = setting(
        (),
        f"Batches as ROWSxTOKENS, such as 16x128. Default: {' '.join(DEFAULT_SHAPES)}; {SHAPES}.",
    )
    rounds: int | None = setting(
        None, f"Interleaved rounds. Default: {ROUNDS}; {FEW_ROUNDS} of {LARGE}.", rule=COUNT
    )
    vocabulary_size: int | None = setting(
        None,
        f"Number of tokens known. Default: {DEFAULT_VOCABULARY}; {LARGE_VOCABULARY} of {LARGE}.",
        rule=VOCABULARY_SIZE,
    )
    xla: tuple = setting(
        ("auto",),
        f"How ours are compiled, of {' '.join(SWITCHES)}; others than the first as extras.",
    )
    peers: tuple = setting(("all",), f"What to compare with: all, none, or of {' '.join(PEERS)}.")
    peer_environment: str = setting(str(PEER.default_folder()), "Made if it is not there.")
    jax_environment: str = setting(str(JAX_PEER.default_folder()), "Made if it is not there.")
    out: str = setting(
        "benchmarks/results/training", "Folder to write training.json and training.md to."
    )

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        known = {"sizes": SIZES, "positions": method_names(), "precisions": PRECISIONS}
        known["xla"] = SWITCHES
        if len(self.peers) != 1 or self.peers[0] not in ("all", "none"):
            known["peers"] = (*PEERS, "all", "none") if len(self.peers) == 1 else PEERS
        found = [
            *wrong_items(self, known),
            *(
                f"--shapes must be of the form ROWSxTOKENS, such as 16x128. Received: {shape!r}"
                for shape in self.shapes
                if not _SHAPE.fullmatch(shape)
            ),
            *wrong_fields(self).values(),
            *no_folder(self.out),
        ]
        libraries = {PEERS[name].library for name in self.peer_names if name in PEERS}
        for library, (environment, folder) in self.environments().items():
            if library in libraries:
                found += filter(None, [environment.problem(folder)])
        return found

    def environments(self):
        """Returns, for each library of an environment of its own, that and its folder."""
        return {
            "torch": (PEER, folder_of(self.peer_environment)),
            "jax": (JAX_PEER, folder_of(self.jax_environment)),
        }

    @property
    def peer_names(self):
        """Names of the peers, of `PEERS`."""
        if self.peers == ("all",):
            return tuple(PEERS)
        return () if self.peers == ("none",) else self.peers

    def positions_of(self, size):
        """Returns the methods of a size."""
        return self.positions[:2] if size in LARGE else self.positions

    def has_extras(self, size):
        """Returns whether what ratios are not to is measured of a size: it costs time alone."""
        return size not in LARGE

    def shapes_of(self, size):
        """Returns rows and tokens per row of each batch of a size."""
        texts = self.shapes or SHAPES.get(size, DEFAULT_SHAPES)
        return [tuple(map(int, text.split("x"))) for text in texts]

    def rounds_of(self, size):
        """Returns the number of rounds of a size."""
        return self.rounds or (FEW_ROUNDS if size in LARGE else ROUNDS)

    def vocabulary_of(self, size):
        """Returns the vocabulary's size of a size."""
        return self.vocabulary_size or (LARGE_VOCABULARY if size in LARGE else DEFAULT_VOCABULARY)
