"""Trains every positional method for a short time and draws what it learned about positions.

    python -m docs.generate.gallery
    python -m docs.generate.gallery --positions linear_slope.py --out my_gallery

All methods get the same data, masks and steps, those of `keras-tupe quickstart`. Writes to `--out`
a picture per method, `heads/NAME.png`, a page, `README.md`, and its numbers, `gallery.json`. All
methods take about half an hour on two cores; more can be added to a gallery that has the same data
and steps.
"""

import dataclasses
import json
import math
import pathlib

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from keras_tupe import positions
from keras_tupe.analysis import mean_attention_scores, name_patterns, remove_row_constants
from training.command.checks import no_folder
from training.command.folder_lock import FolderLock
from training.command.report import replaced_file, replaced_text, save, table
from training.command.settings import COUNT, parse, setting, wrong_fields
from training.command.shell import sentences
from training.command.without_keras import method_names as all_names
from training.draw.drawings import patterns_of_scores, telling_logits
from training.quickstart import data as quickstart_data
from training.quickstart import run
from training.quickstart.settings import method_names

SIZE, SEED = "tiny", 0  # of the encoders; of weights, order and masks
TEXTS = 256  # held-out rows behind attention scores
PICTURES = "heads"  # folder of the pictures, one per method
FACTS = "gallery.json"
# Inches and points: 790 pixels wide, and the titles can be read on a telephone too.
PANEL, GAP, TITLE, FONT = 1.7, 0.08, 0.45, 17
COLUMNS = 4
WORDS = {"logits": "position logits", "scores": "attention scores"}


@dataclasses.dataclass(frozen=True)
class Heads:
    """The heads of the first block of one encoder.

    Attributes:
        kind: `"logits"`, made by positions alone, or `"scores"`, averaged over texts.
        matrices: `(heads, length, length)`, [CLS] first.
        patterns: name of the pattern of each head.
    """

    kind: str
    matrices: np.ndarray
    patterns: list


@dataclasses.dataclass(frozen=True)
class Entry:
    """One method of the gallery.

    Attributes:
        name: the method.
        before, after: its `Heads` at initialization and after training.
        loss: held-out masked-token loss after training, in nats.
    """

    name: str
    before: Heads
    after: Heads
    loss: float


def draw_entry(path, entry, steps):
    """Draws the heads of one method: at initialization above, after training below.

    Position logits are drawn without what rows share, red for above, blue for below; attention
    scores from dark to light. Each panel has colors of its own, and lines set [CLS] apart.

    Args:
        path: PNG file to write.
        entry: an `Entry`.
        steps: number of training steps between the two.
    """
    states = [
        (f"{entry.name} at initialization: {WORDS[entry.before.kind]}", entry.before),
        (f"after {steps:,} steps: {WORDS[entry.after.kind]}", entry.after),
    ]
    lines = math.ceil(len(entry.before.matrices) / COLUMNS)
    block = TITLE + lines * (PANEL + GAP)
    width, height = COLUMNS * (PANEL + GAP) + GAP, len(states) * block
    figure = Figure(figsize=(width, height))
    for number, (title, heads) in enumerate(states):
        top = height - number * block
        place = (GAP / width, (top - TITLE + 0.1) / height)
        figure.text(*place, title, va="bottom", fontsize=FONT)
        for head, matrix in enumerate(heads.matrices):
            line, column = divmod(head, COLUMNS)
            x, y = GAP + column * (PANEL + GAP), top - TITLE - line * (PANEL + GAP) - PANEL
            box = (x / width, y / height, PANEL / width, PANEL / height)
            _draw_panel(figure.add_axes(box), heads.kind, matrix)
    save(figure, path)


def _draw_panel(axes, kind, matrix):
    if kind == "logits":
        drawn = matrix - matrix[:, 1:].mean(axis=1, keepdims=True)
        words = remove_row_constants(matrix[None, 1:, 1:])[0]
        drawn[1:] += (words - drawn[1:, 1:]).mean(axis=1, keepdims=True)
        limit = np.quantile(np.abs(drawn[1:, 1:]), 0.995) or 1.0
        axes.imshow(drawn, cmap=colormaps["RdBu_r"], vmin=-limit, vmax=limit)
    else:
        limit = np.nanquantile(matrix[1:, 1:], 0.995) or 1.0
        axes.imshow(matrix, cmap=colormaps["viridis"], vmin=0, vmax=limit)
    color = "black" if kind == "logits" else "white"
    axes.axhline(0.5, color=color, linewidth=0.5)
    axes.axvline(0.5, color=color, linewidth=0.5)
    axes.set_xticks([])
    axes.set_yticks([])


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the gallery."""

    positions: str = setting("all", "Positional methods or .py files, or all.", by_commas=True)
    steps: int = setting(600, "Training steps of each method.", rule=COUNT)
    out: str = setting("docs/gallery", "Folder to write; others of the methods in it stay.")

    def names(self):
        """Returns the names of the methods."""
        return all_names() if self.positions == "all" else method_names(self.positions)

    def problems(self):
        """Returns a sentence for each mistake."""
        found = [*wrong_fields(self).values(), *no_folder(self.out)]
        try:
            self.names()
        except ValueError as error:
            found.append(str(error))
        return found


def others_of(settings, data):
    """Returns the facts of the methods that the folder has already and that will stay there.

    Raises:
        ValueError: if they were made from other data or with other settings.
    """
    path = pathlib.Path(settings.out) / FACTS
    if not path.is_file() or settings.positions == "all":
        return {}
    there, names = json.loads(path.read_text(encoding="utf-8")), settings.names()
    others = {name: found for name, found in there["methods"].items() if name not in names}
    now = origin_of(settings, data)
    unlike = {key: there[key] for key in now if there[key] != now[key]}
    if others and unlike:
        raise ValueError(
            "Methods of a gallery must have been trained alike: choose another --out, or draw all "
            f"methods again (--positions all). Received: {settings.out!r} with {unlike}, and now "
            f"{ {key: now[key] for key in unlike} }"
        )
    return others


def origin_of(settings, data):
    """Returns what the methods of a gallery have in common: a dictionary."""
    return {
        "size": SIZE,
        "steps": settings.steps,
        "tokens": settings.steps * quickstart_data.BATCH_SIZE * quickstart_data.LENGTH,
        "seed": SEED,
        "corpus": data.facts["hash"],
    }


def heads_of(backbone, rows):
    """Returns the `Heads` of an encoder: position logits if positions alone make any."""
    logits, _ = telling_logits(backbone, rows["token_ids"].shape[1])
    if logits is not None:
        return Heads("logits", logits, name_patterns(logits))
    scores = mean_attention_scores(backbone, rows["token_ids"], rows["padding_mask"])[0]
    return Heads("scores", scores, patterns_of_scores(scores))


def entry_of(name, data, settings, rows):
    """Trains one method; returns its `Entry`."""
    print(f"{name}:", flush=True)
    model = run.build(name, data, SIZE, SEED)
    before = heads_of(model.backbone, rows)
    _, (loss, _) = run.pretrain(model, data, settings.steps)
    return Entry(name, before, heads_of(model.backbone, rows), loss)


def held_out_rows(data):
    """Returns the inputs of some held-out rows, without those that fill the last batch up."""
    batches = [batch for batch, _, _ in data.held_out.evaluation_batches()]
    count = min(TEXTS, len(data.held_out))
    return {
        key: np.concatenate([batch[key] for batch in batches])[:count]
        for key in ("token_ids", "padding_mask")
    }


def facts_of(entries, settings, data, others):
    """Returns what was trained and found, for programs: dictionaries, lists, strings, numbers.

    Args:
        entries: list of `Entry`.
        settings, data: what they were made with.
        others: facts of methods that were there before, by name.
    """
    found = {
        entry.name: {
            "summary": positions.get(entry.name).summary,
            "picture": f"{PICTURES}/{entry.name}.png",
            "loss": round(float(entry.loss), 4),
            "before": {"kind": entry.before.kind, "patterns": entry.before.patterns},
            "after": {"kind": entry.after.kind, "patterns": entry.after.patterns},
        }
        for entry in entries
    }
    return {**origin_of(settings, data), "methods": dict(sorted({**others, **found}.items()))}


def page(facts):
    """Returns the text of the page.

    Args:
        facts: what `facts_of` returns.
    """
    rows = [
        [
            f"[`{name}`]({found['picture']})",
            found["summary"],
            f"{found['loss']:.2f}",
            "; ".join(found["before"]["patterns"]),
            "; ".join(found["after"]["patterns"]),
        ]
        for name, found in facts["methods"].items()
    ]
    header = ["picture", "what it is", "held-out loss", "heads at the start", "heads after"]
    return "\n".join(
        [
            "# Gallery of positional methods",
            "",
            f"The first block's heads of a {facts['size']} encoder, at initialization and after "
            f"{facts['steps']:,} steps ({facts['tokens']:,} tokens) of masked language modeling; "
            f"one seed ({facts['seed']}), corpus hash {facts['corpus']}. Made by "
            "`python -m docs.generate.gallery`, one picture per method.",
            "",
            "Red and blue: attention logits that positions alone make, without what a row shares, "
            "since softmax ignores it. Green: attention scores averaged over texts, for heads "
            "whose logits do not tell positions apart. Rows are queries, columns keys, [CLS] "
            "first. Every panel has colors of its own. A loss after so short a training says how "
            "fast a method starts, not how good it gets.",
            "",
            table(header, rows),
            "",
        ]
    )


def make(settings, data, others):
    """Trains all methods and writes pictures, facts and page; returns the page's text."""
    rows = held_out_rows(data)
    entries = [entry_of(name, data, settings, rows) for name in settings.names()]
    folder, facts = pathlib.Path(settings.out), facts_of(entries, settings, data, others)
    (folder / PICTURES).mkdir(exist_ok=True)
    for entry in entries:
        replaced_file(
            folder / PICTURES / f"{entry.name}.png",
            lambda path, entry=entry: draw_entry(path, entry, settings.steps),
        )
    replaced_text(folder / FACTS, json.dumps(facts, indent=1) + "\n")
    text = page(facts)
    replaced_text(folder / "README.md", text)
    return text


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "gallery")
    with sentences("gallery", "Nothing was written."), FolderLock(settings.out, "gallery"):
        data = quickstart_data.prepare(None, SEED)
        text = make(settings, data, others_of(settings, data))
    print(text.split("\n\n")[-1])
    print(f"pictures and page in {settings.out}")


if __name__ == "__main__":
    main()
