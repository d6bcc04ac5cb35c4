"""The settings of `training.evaluate_perplexity`."""

import dataclasses

from training.command.checks import COUNT, COUNT_OR_ZERO, out_of_range, wrong_choices
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
    split: str = setting("valid", f"Which rows: {', '.join(SPLITS)}.")
    rows: int | None = setting(None, "Rows to read, from the first on, >= 1. Default: all.")
    bins: int = setting(16, "Parts that the positions of a row are divided into, >= 1.")
    batch_tokens: int = setting(16_384, "Tokens that the model gets at once, >= 1.")
    memory_length: int | None = setting(
        None,
        "Tokens of the memory before each segment, >= 0; it may be longer than that of training. "
        "Default: the preset's.",
    )
    segment_length: int | None = setting(None, "Tokens of a segment, >= 1. Default: the preset's.")
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = measurement_problems(self, "made by `keras-tupe prepare`")
        found += wrong_choices(self, {"split": SPLITS})
        ranges = dict.fromkeys(("rows", "bins", "batch_tokens", "segment_length"), COUNT)
        found += out_of_range(self, {**ranges, "memory_length": COUNT_OR_ZERO}).values()
        return found
