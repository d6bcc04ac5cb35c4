"""The settings of `training.evaluate_sts`."""

import dataclasses

from training.command.checks import COUNT, COUNT_OR_ZERO, wrong_fields
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
    split: str = setting(SPLITS[0], "Which pairs.", one_of=SPLITS)
    pooling: str | None = setting(
        None,
        "How hidden states become a vector. Default: an embedder's own, or mean.",
        one_of=POOLINGS,
    )
    length: int | None = setting(
        None,
        "Tokens of a text, special ones included. Default: the preset's.",
        rule=("an integer >= 3", lambda value: value >= 3),
    )
    batch_size: int = setting(32, "Texts that the model gets at once.", rule=COUNT)
    resamples: int = setting(2000, "Draws of pairs for the intervals.", rule=COUNT)
    seed: int = setting(0, "Of the draws.", rule=COUNT_OR_ZERO)
    check_counts: bool = setting(
        True, "Whether another number of pairs than the official one is an error."
    )
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = measurement_problems(self, "of GLUE's files")
        return [*found, *wrong_fields(self).values()]
