"""The settings of `training.query`."""

import dataclasses
import pathlib

from training.command.settings import setting
from training.presets.checks import TOKENIZERS


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.query`."""

    folder: str | None = setting(None, "Export with a card.json.", positional=True)
    fill: tuple = setting((), "Text with a [MASK]; may be given again.", each=True)
    nearest: tuple = setting((), "Any text; may be given again.", each=True)
    prompt: tuple = setting(
        (),
        "Text to go on with, or source; may be given again.",
        each=True,
    )

    @property
    def strings(self):
        """The folder of the export that takes strings: text, else preset; `None` without both."""
        folder = pathlib.Path(self.folder)
        if (folder / "text").is_dir():
            return "text"
        has_tokenizer = any((folder / "preset" / name).is_file() for name in TOKENIZERS)
        return "preset" if has_tokenizer else None

    def problems(self):
        """Returns a sentence for each mistake."""
        if self.folder is None or not (pathlib.Path(self.folder) / "example.npz").is_file():
            return [
                "the folder must be an export of keras_tupe, with its example.npz. Make one with "
                "`python -m training.quickstart`. Received: "
                + ("none" if self.folder is None else repr(self.folder))
            ]
        if (self.fill or self.nearest or self.prompt) and self.strings is None:
            return [
                "--fill, --nearest and --prompt need an export with text/ or preset/, of a preset "
                "that has a tokenizer; `training.export` writes text/ unless told --no-text. "
                f"Received: {self.folder!r}"
            ]
        return []
