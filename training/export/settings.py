"""The settings of `training.export`."""

import dataclasses
import os

from training.command.checks import COUNT, NOT_NEGATIVE, no_folder, out_of_range
from training.command.settings import setting
from training.command.without_keras import without_keras
from training.presets.checks import is_seq2seq

with without_keras():
    from keras_tupe._new_folder import check_is_new

FORMATS = ("savedmodel", "onnx", "litert")
_RANGES = {"num_beams": COUNT, "length_penalty": NOT_NEGATIVE}


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
        None,
        "Tokens per row in signatures, of a model of pairs those of a target. Default: the "
        "preprocessor's, or max_sequence_length.",
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
    num_beams: int = setting(
        1, "Beginnings that a model of pairs keeps, >= 1; 1 takes the likeliest token."
    )
    length_penalty: float = setting(
        1.0, "Power of a text's length that its log-probability is divided by, >= 0; with beams."
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = list(out_of_range(self, _RANGES).values())
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
        elif is_seq2seq(self.preset):
            found += self._problems_of_pairs()
        elif self.num_beams > 1:
            found.append(
                "--num-beams is for models of pairs; others are exported without it. Received: "
                f"--num-beams {self.num_beams}"
            )
        if self.out is None:
            return [*found, "--out must name what to make. Received: none"]
        try:
            check_is_new(self.out)
        except ValueError as error:
            return [*found, str(error)]
        return found + no_folder(self.out)

    def _problems_of_pairs(self):
        if self.format != FORMATS[0]:
            return [
                "--format must be savedmodel for a model of pairs, whose loop over tokens other "
                f"formats do not have. Received: --format {self.format}"
            ]
        if self.dynamic_length or not self.text:
            return [
                "--dynamic-length and --no-text are for encoders; text/ is all that a model of "
                "pairs is exported as, and takes texts of any length. Received: "
                + ("--dynamic-length" if self.dynamic_length else "--no-text")
            ]
        return []
