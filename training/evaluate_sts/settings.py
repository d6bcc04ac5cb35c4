"""The settings of `training.evaluate_sts`."""

import dataclasses

from training.command.checks import COUNT, COUNT_OR_ZERO, out_of_range, wrong_choices
from training.command.settings import setting
from training.presets.checks import measurement_problems

POOLINGS = ("mean", "cls", "max")
SPLITS = ("validation", "train")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.evaluate_sts`."""

    preset: str | None = setting(None, "Folder of a preset with a tokenizer.", positional=True)
    data: str | None = setting(None, "Folder of GLUE's official files, or of STS-B's.")
    out: str | None = setting(None, "Folder of the results.")
    split: str = setting(SPLITS[0], f"Which pairs: {', '.join(SPLITS)}.")
    pooling: str | None = setting(
        None,
        f"How hidden states become a vector: {', '.join(POOLINGS)}. Default: an embedder's own, or "
        "mean.",
    )
    length: int | None = setting(
        None, "Tokens of a text, special ones included, >= 3. Default: the preset's."
    )
    batch_size: int = setting(32, "Texts that the model gets at once, >= 1.")
    resamples: int = setting(2000, "Draws of pairs for the intervals, >= 1.")
    seed: int = setting(0, "Of the draws, >= 0.")
    check_counts: bool = setting(
        True, "Whether another number of pairs than the official one is an error."
    )
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = measurement_problems(self, "of GLUE's files")
        found += wrong_choices(self, {"split": SPLITS, "pooling": POOLINGS})
        at_least_3 = ("an integer >= 3", lambda value: value >= 3)
        ranges = {"length": at_least_3, "batch_size": COUNT, "resamples": COUNT}
        found += out_of_range(self, {**ranges, "seed": COUNT_OR_ZERO}).values()
        return found
