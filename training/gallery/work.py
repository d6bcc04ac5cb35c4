"""Every method of the gallery, trained and drawn, and the page about them."""

import pathlib

import numpy as np

from keras_tupe import positions
from keras_tupe.analysis import mean_attention_scores, name_patterns
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file, replaced_text
from training.command.stages import Stages
from training.command.tables import table
from training.draw.drawings import patterns_of_scores, telling_logits
from training.gallery.picture import Entry, Heads, draw_gallery
from training.quickstart import data as quickstart_data
from training.quickstart import plan, run

TEXTS = 256  # held-out rows behind attention scores
LINES = 8  # methods per picture


def make_gallery(settings):
    """Trains all methods and writes pictures and page; returns the page's text.

    Args:
        settings: a `Settings` without problems.

    Raises:
        ValueError: if the corpus or the folder cannot be used.
    """
    with FolderLock(settings.out, "gallery"), Stages("gallery") as stages:
        slowness = plan.slowness()
        plan.expect_data(stages, settings.corpus, slowness)
        work, rates = plan.Work(settings.steps, 0), plan.Rates().times(slowness)
        for name in settings.names():
            for stage, seconds, kind in work.stages(name, rates)[:3]:
                stages.expect(stage, seconds, kind)
        documents = quickstart_data.load_documents(settings.corpus, stages)
        data = quickstart_data.prepare(documents, run.BATCH_SIZE, settings.seed, stages)
        return make(settings, data, stages)


def heads_of(backbone, rows):
    """Returns the `Heads` of an encoder: position logits if positions alone make any."""
    logits, _ = telling_logits(backbone, rows["token_ids"].shape[1])
    if logits is not None:
        return Heads("logits", logits, name_patterns(logits))
    scores = mean_attention_scores(backbone, rows["token_ids"], rows["padding_mask"])[0]
    return Heads("scores", scores, patterns_of_scores(scores))


def entry_of(name, data, settings, rows, stages):
    """Trains one method; returns its `Entry`."""
    show = run.Show(stages, name)
    show.begin("compiling")
    model = run.build(name, data, settings.size, settings.seed)
    before = heads_of(model.backbone, rows)
    _, (loss, _) = run.pretrain(model, data, settings.steps, show)
    return Entry(name, before, heads_of(model.backbone, rows), loss)


def held_out_rows(data):
    """Returns the inputs of some held-out rows, without those that fill the last batch up."""
    batches = [batch for batch, _, _ in data.held_out.evaluation_batches()]
    count = min(TEXTS, len(data.held_out))
    return {
        key: np.concatenate([batch[key] for batch in batches])[:count]
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
    tokens = settings.steps * run.BATCH_SIZE * quickstart_data.LENGTH
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


def make(settings, data, stages):
    """Trains all methods and writes pictures and page; returns the page's text."""
    rows = held_out_rows(data)
    entries = [entry_of(name, data, settings, rows, stages) for name in settings.names()]
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
