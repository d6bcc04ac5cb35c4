"""The settings of `training.evaluate_perplexity`."""

import dataclasses

from training.command.checks import COUNT, COUNT_OR_ZERO, wrong_fields
from training.command.settings import setting
from training.presets.checks import measurement_problems

SPLITS = ("valid", "train")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.evaluate_perplexity`."""

    preset: str | None = setting(
        None, "Folder of a causal language model with a tokenizer.", positional=True
    )
    data: str | None = setting(None, "Folder of rows, made by `keras-tupe prepare`.")
    out: str | None = setting(None, "Folder of the results.")
    split: str = setting("valid", "Which rows.", one_of=SPLITS)
    rows: int | None = setting(None, "Rows to read, from the first on. Default: all.", rule=COUNT)
    bins: int = setting(16, "Parts that the positions of a row are divided into.", rule=COUNT)
    batch_tokens: int = setting(16_384, "Tokens that the model gets at once.", rule=COUNT)
    memory_length: int | None = setting(
        None,
        "Tokens of the memory before each segment; it may be longer than that of training. "
        "Default: the preset's.",
        rule=COUNT_OR_ZERO,
    )
    segment_length: int | None = setting(
        None, "Tokens of a segment. Default: the preset's.", rule=COUNT
    )
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = measurement_problems(self, "made by `keras-tupe prepare`")
        return [*found, *wrong_fields(self).values()]
