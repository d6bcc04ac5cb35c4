"""The settings of `training.evaluate_blimp`."""

import dataclasses
import pathlib

from training.command.checks import no_folder, not_there
from training.command.settings import setting

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
    )
    paradigms: tuple = setting((), "Names of the paradigms to score. Default: all in --data.")
    limit: int | None = setting(None, "Pairs of each paradigm, from its first on, >= 1.")
    skip_bad: bool = setting(
        False, "Whether lines and pairs that cannot be used are left out, and counted."
    )
    batch_tokens: int = setting(4096, "Tokens that the model gets at once, >= 1.")
    precision: str = setting("float32", f"Precision of the work: {', '.join(PRECISIONS)}.")
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = [
            f"{name} must be given. Received: none"
            for name in ("PRESET", "--data", "--out")
            if getattr(self, name.strip("-").lower()) is None
        ]
        if self.preset is not None and not pathlib.Path(self.preset).is_dir():
            found.append(f"PRESET must be the folder of a preset. Received: {self.preset!r}")
        if self.data is not None and not pathlib.Path(self.data).exists():
            found.append(
                f"--data must be a folder of .jsonl files. Received: {not_there(self.data)}"
            )
        found += no_folder(self.out) if self.out is not None else []
        for name, allowed in (("score", SCORES), ("precision", PRECISIONS)):
            if getattr(self, name) not in allowed:
                found.append(
                    f"--{name} must be one of {', '.join(allowed)}. "
                    f"Received: {getattr(self, name)!r}"
                )
        for name in ("limit", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                option = name.replace("_", "-")
                found.append(f"--{option} must be an integer >= 1. Received: {value}")
        if self.position_file is not None and not pathlib.Path(self.position_file).is_file():
            found.append(
                f"--position-file must be an existing Python file. Received: {self.position_file!r}"
            )
        return found
