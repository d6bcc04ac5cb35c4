"""The settings of `training.export`."""

import dataclasses
import os

from training.command.checks import no_folder
from training.command.settings import setting
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe._new_folder import check_is_new

FORMATS = ("savedmodel", "onnx", "litert")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.export`."""

    preset: str | None = setting(None, "Folder of a preset of this package.", positional=True)
    out: str | None = setting(None, "What to make; new.")
    position_file: str | None = setting(
        None, "Python file that defines the preset's own positional method."
    )
    format: str = setting(FORMATS[0], f"One of {', '.join(FORMATS)}.")
    length: int | None = setting(
        None, "Tokens per row in signatures. Default: the preprocessor's, or max_sequence_length."
    )
    dynamic_length: bool = setting(
        False,
        "Whether a signature for any length is added; never let a server batch mixed lengths with "
        "it.",
    )
    text: bool = setting(True, "Whether text/ is written, which holds the weights a second time.")
    with_preset: bool = setting(
        False, "Whether the preset is put into preset/, which holds the weights once more."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = []
        if self.format not in FORMATS:
            found.append(f"--format must be one of {', '.join(FORMATS)}. Received: {self.format!r}")
        elif self.format != "savedmodel" and (self.length or self.dynamic_length):
            found.append(
                "--length and --dynamic-length are for SavedModels; other formats take any length. "
                f"Received: --format {self.format}"
            )
        elif self.format != "savedmodel" and self.with_preset:
            found.append(
                "--with-preset is for SavedModels, which are folders; other formats are one file. "
                f"Received: --format {self.format}"
            )
        if self.length is not None and self.length < 1:
            found.append(f"--length must be at least 1. Received: {self.length}")
        if self.preset is None:
            found.append("PRESET must be the folder of a preset. Received: none")
        elif not os.path.isdir(self.preset):
            found.append(f"The preset must be a folder. Received: {self.preset!r}")
        if self.out is None:
            return [*found, "--out must name what to make. Received: none"]
        try:
            check_is_new(self.out)
        except ValueError as error:
            return [*found, str(error)]
        return found + no_folder(self.out)
