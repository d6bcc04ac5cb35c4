"""The settings of `training.query`."""

import dataclasses
import pathlib

from training.command.settings import setting


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.query`."""

    folder: str | None = setting(None, "Export with a card.json.", positional=True)
    fill: tuple = setting((), "Text with a [MASK]; may be given again.", each=True)
    nearest: tuple = setting((), "Any text; may be given again.", each=True)

    @property
    def has_text(self):
        """Whether the export takes strings."""
        return (pathlib.Path(self.folder) / "text").is_dir()

    def problems(self):
        """Returns a sentence for each mistake."""
        if self.folder is None or not (pathlib.Path(self.folder) / "example.npz").is_file():
            return [
                "the folder must be an export of keras_tupe, with its example.npz. Make one with "
                "`python -m training.quickstart`. Received: "
                + ("none" if self.folder is None else repr(self.folder))
            ]
        if (self.fill or self.nearest) and not self.has_text:
            return [
                "--fill and --nearest need an export with text/, of a preset that has a tokenizer. "
                f"Received: {self.folder!r}"
            ]
        return []
