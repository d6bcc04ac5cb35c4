"""The settings of `benchmarks.gpu`."""

import dataclasses
import math

from benchmarks.harness.checks import PRECISIONS, SIZES, Lists, wrong_items, wrong_numbers
from benchmarks.training.settings import POSITIONS, VOCABULARY_SIZE
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields
from training.command.without_keras import method_names

SYSTEMS = ("jax", "tensorflow", "transformers")
SMALL = {"sizes": ("tiny",), "precisions": ("bfloat16",), "lengths": (16,), "steps": 2}
SMALL |= {"tokens": 64, "vocabulary_size": 100, "product_width": 64}
PEAK = ("operations per second, above 0, such as 312e12", lambda value: 0 < value < math.inf)


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.gpu`."""

    systems: tuple = setting(SYSTEMS, "What to run; what is not installed is skipped.")
    small: bool = setting(
        False, "Whether all is as small as a CPU does in a minute: this says that it runs."
    )
    sizes: tuple = setting(("base",), f"Sizes of the model: {', '.join(SIZES)}.")
    positions: tuple = setting(POSITIONS, "Position methods; the first is the baseline.")
    precisions: tuple = setting(PRECISIONS[::-1], "Precisions.")
    lengths: tuple = setting((512, 128), "Sequence lengths in tokens, each >= 1.")
    steps: int = setting(30, "Timed steps of each.", rule=COUNT)
    tokens: int = setting(32768, "Tokens of a batch.", rule=COUNT)
    vocabulary_size: int = setting(32768, "Number of tokens known.", rule=VOCABULARY_SIZE)
    peak_flops: float | None = setting(
        None, "Operations per second in bfloat16. Default: of a table of devices.", rule=PEAK
    )
    product_width: int = setting(8192, "Width of the matrix product.", rule=COUNT)
    out: str = setting("benchmarks/results/training", "Folder to write gpu.json and gpu.md to.")

    NUMBERS = ("lengths",)

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        known = {
            "systems": SYSTEMS,
            "sizes": SIZES,
            "positions": method_names(),
            "precisions": PRECISIONS,
        }
        return [
            *wrong_items(self, known),
            *wrong_numbers(self, "lengths"),
            *wrong_fields(self).values(),
            *no_folder(self.out),
        ]
