"""The settings of `python -m docs`."""

import dataclasses
import pathlib

from training.command.checks import wrong_out
from training.command.settings import setting


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the documentation's build."""

    out: str = setting("build/docs", "Folder of the site; its page to open is html/index.html.")
    draft: bool = setting(False, "Make the site in spite of warnings, to look at unfinished pages.")

    def problems(self):
        """Returns a sentence for each mistake."""
        return wrong_out(self.out, "the site")

    def folder(self):
        """Returns the folder as an absolute path."""
        return pathlib.Path(self.out).absolute()
