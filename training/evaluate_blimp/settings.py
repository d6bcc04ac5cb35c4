"""The settings of `training.evaluate_blimp`."""

import dataclasses
import os

from training.command.checks import COUNT, wrong_fields
from training.command.settings import setting
from training.presets.checks import measurement_problems

SCORES = ("token", "word")
PRECISIONS = ("float32", "mixed_bfloat16")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.evaluate_blimp`."""

    preset: str | None = setting(
        None,
        "Folder, with a tokenizer, of a masked or causal language model, or of a discriminator of "
        "replaced tokens.",
        positional=True,
    )
    data: str | None = setting(None, "Folder of BLiMP's .jsonl files, or one of them.")
    out: str | None = setting(None, "Folder of the results; the same command continues there.")
    score: str = setting(
        "token",
        "What a masked language model does not see of what it predicts: each token alone (token), "
        "or with the later pieces of its word (word).",
        one_of=SCORES,
    )
    paradigms: tuple = setting((), "Names of the paradigms to score. Default: all in --data.")
    limit: int | None = setting(None, "Pairs of each paradigm, from its first on.", rule=COUNT)
    skip_bad: bool = setting(
        False, "Whether lines and pairs that cannot be used are left out, and counted."
    )
    batch_tokens: int = setting(4096, "Tokens that the model gets at once.", rule=COUNT)
    precision: str = setting("float32", "Precision of the work.", one_of=PRECISIONS)
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = measurement_problems(self, "of .jsonl files", os.path.exists)
        return [*found, *wrong_fields(self).values()]
