"""The settings of `training.evaluate_perplexity`."""

import dataclasses
import pathlib

from training.command.checks import COUNT, no_folder, not_there, out_of_range, wrong_choices
from training.command.settings import setting

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
        for name, kind in (("preset", "of a preset"), ("data", "made by `keras-tupe prepare`")):
            path = getattr(self, name)
            if path is not None and not pathlib.Path(path).is_dir():
                title = "PRESET" if name == "preset" else f"--{name}"
                found.append(f"{title} must be a folder {kind}. Received: {not_there(path)}")
        found += no_folder(self.out) if self.out is not None else []
        found += wrong_choices(self, {"split": SPLITS})
        found += out_of_range(self, {"rows": COUNT, "bins": COUNT, "batch_tokens": COUNT}).values()
        if self.position_file is not None and not pathlib.Path(self.position_file).is_file():
            found.append(
                f"--position-file must be an existing Python file. Received: {self.position_file!r}"
            )
        return found
