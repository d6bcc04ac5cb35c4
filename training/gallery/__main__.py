"""Train every positional method for a short time and draw what it learned about positions.

    python -m training.gallery
    python -m training.gallery --positions tupe_r,qkr_3,my_method.py --steps 2000 --out mine

All methods get the same data, masks and steps, those of `training.quickstart`. Writes the pictures
and a page, `README.md`, to `--out`. 24 methods take about half an hour on two cores.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import pathlib

import numpy as np
import tqdm

from keras_tupe import SIZES, positions
from keras_tupe.analysis import mean_attention_scores, name_patterns, position_logits
from training.command.checks import no_folder
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file, replaced_text
from training.command.settings import parse, setting
from training.command.shell import sentences
from training.command.tables import table
from training.gallery.picture import Entry, Heads, draw_gallery
from training.quickstart import data as quickstart_data
from training.quickstart import models
from training.quickstart.__main__ import method_names

TEXTS = 256  # held-out rows behind attention scores
LINES = 8  # methods per picture
SMALLEST_SCORE = 1e-9


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the gallery."""

    positions: str = setting("all", "Positional methods or .py files by commas, or all.")
    steps: int = setting(600, "Training steps of each method, >= 1.")
    size: str = setting("tiny", f"Size of the encoders: {', '.join(SIZES)}.")
    seed: int = setting(0, "Seed of weights, order and masks, an integer >= 0.")
    corpus: str | None = setting(None, "Text file or folder; the installed packages' docstrings.")
    out: str = setting("docs/gallery", "Folder to write; pictures in it are replaced.")

    def names(self):
        """Returns the names of the methods."""
        return (
            sorted(positions.METHODS) if self.positions == "all" else method_names(self.positions)
        )

    def problems(self):
        """Returns a sentence for each mistake."""
        found = []
        if self.steps < 1:
            found.append(f"--steps must be an integer >= 1. Received: {self.steps}")
        if self.size not in SIZES:
            found.append(f"--size must be one of {list(SIZES)}. Received: {self.size!r}")
        if self.seed < 0:
            found.append(f"--seed must be an integer >= 0. Received: {self.seed}")
        if self.corpus is not None and not pathlib.Path(self.corpus).exists():
            found.append(f"--corpus must exist. Received: {self.corpus!r}")
        found += no_folder(self.out)
        try:
            self.names()
        except ValueError as error:
            found.append(str(error))
        return found


def heads_of(backbone, rows):
    """Returns the `Heads` of an encoder: position logits if positions alone make any."""
    length = rows["token_ids"].shape[1]
    ids = np.unique(np.linspace(0, backbone.vocabulary_size - 1, 64).astype("int32"))
    for repeated in (None, ids):
        logits = position_logits(backbone, length, repeated)
        if np.ptp(logits, axis=-1).max() > 1e-5 * max(np.abs(logits).max(), 1e-5):
            return Heads("logits", logits, name_patterns(logits))
    scores = mean_attention_scores(backbone, rows["token_ids"], rows["padding_mask"])[0]
    return Heads("scores", scores, name_patterns(np.log(np.maximum(scores, SMALLEST_SCORE))))


def entry_of(name, data, settings, rows):
    """Trains one method; returns its `Entry`."""
    model = models.build(name, data, settings.size, settings.seed)
    before = heads_of(model.backbone, rows)
    trainer, _, _ = models.pretrain(model, data, settings.steps)
    loss, _ = models.evaluate(trainer, data)
    return Entry(name, before, heads_of(model.backbone, rows), loss)


def held_out_rows(data):
    """Returns the inputs of some held-out rows."""
    batches = [batch for batch, _, _ in data.held_out.evaluation_batches()]
    return {
        key: np.concatenate([batch[key] for batch in batches])[:TEXTS]
        for key in ("token_ids", "padding_mask")
    }


def page(entries, files, settings, facts):
    """Returns the text of the page."""
    rows = [
        [
            f"`{entry.name}`",
            positions.get(entry.name).summary,
            f"{entry.loss:.2f}",
            "; ".join(entry.before.patterns),
            "; ".join(entry.after.patterns),
        ]
        for entry in entries
    ]
    header = ["method", "what it is", "held-out loss", "heads at the start", "heads after"]
    tokens = settings.steps * models.BATCH_SIZE * quickstart_data.LENGTH
    return "\n".join(
        [
            "# Gallery of positional methods",
            "",
            f"The first block's heads of a {settings.size} encoder, at initialization and after "
            f"{settings.steps:,} steps ({tokens:,} tokens) of masked language modeling; one seed "
            f"({settings.seed}), corpus hash {facts['hash']}. Made by "
            "`python -m training.gallery`.",
            "",
            "Red and blue: attention logits that positions alone make, without what a row shares, "
            "since softmax ignores it. Green: attention scores averaged over texts, for heads "
            "whose logits do not tell places apart. Rows are queries, columns keys, [CLS] first. "
            "Every panel has colors of its own. A loss after so short a training says how fast "
            "a method starts, not how good it gets.",
            "",
            *(f"![Heads of {', '.join(names)}]({file})\n" for file, names in files.items()),
            table(header, rows),
            "",
        ]
    )


def make(settings, data):
    """Trains all methods and writes pictures and page; returns the page's text."""
    rows = held_out_rows(data)
    bar = tqdm.tqdm(settings.names(), unit=" methods", disable=None)
    entries = [entry_of(name, data, settings, rows) for name in bar]
    folder, files = pathlib.Path(settings.out), {}
    title = f"Heads of the first block, {settings.steps:,} steps"
    for first in range(0, len(entries), LINES):
        part = entries[first : first + LINES]
        file = f"heads_{first // LINES + 1}.png"
        replaced_file(folder / file, lambda path, part=part: draw_gallery(path, part, title))
        files[file] = [entry.name for entry in part]
    text = page(entries, files, settings, data.facts)
    replaced_text(folder / "README.md", text)
    return text


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    with sentences("gallery", "Nothing was written."), FolderLock(settings.out, "gallery"):
        documents = quickstart_data.load_documents(settings.corpus)
        data = quickstart_data.prepare(documents, models.BATCH_SIZE, settings.seed)
        text = make(settings, data)
    print(text.split("\n\n")[-1])
    print(f"pictures and page in {settings.out}")


if __name__ == "__main__":
    main()
