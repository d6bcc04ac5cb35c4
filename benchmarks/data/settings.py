"""The settings of `benchmarks.data`."""

import dataclasses
import pathlib

from training.command.settings import COUNT, setting, wrong_fields


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `benchmarks.data`."""

    data: str | None = setting(None, "Directory of prepared rows. Default: random rows.")
    rows: int = setting(10240, "Rows of each turn.", rule=COUNT)
    batch_size: int = setting(256, "Rows of a batch; divides --rows.", rule=COUNT)
    rounds: int = setting(7, "Interleaved rounds.", rule=COUNT)
    out: str = setting("benchmarks/results/data.json", "JSON file to write.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        wrong = wrong_fields(self)
        found = list(wrong.values())
        if not {"rows", "batch_size"} & set(wrong) and self.rows % self.batch_size:
            found.append(
                "--rows must be a multiple of --batch-size. "
                f"Received: {self.rows} and {self.batch_size}"
            )
        if pathlib.Path(self.out).is_dir():
            found.append(f"--out must be the name of a file. Received: {self.out!r}, a folder")
        return found
