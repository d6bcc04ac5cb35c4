"""Every method of the gallery, trained and drawn, and the page about them."""

import json
import pathlib

import numpy as np

from keras_tupe import positions
from keras_tupe.analysis import mean_attention_scores, name_patterns
from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file, replaced_text
from training.command.stages import Stages
from training.command.tables import table
from training.draw.drawings import patterns_of_scores, telling_logits
from training.gallery.picture import Entry, Heads, draw_entry
from training.machine.slowness import slowness
from training.quickstart import data as quickstart_data
from training.quickstart import plan, recipe, run

TEXTS = 256  # held-out rows behind attention scores
PICTURES = "heads"  # folder of the pictures, one per method
FACTS = "gallery.json"


def make_gallery(settings):
    """Trains all methods and writes pictures, facts and page; returns the page's text.

    Args:
        settings: a `Settings` without problems.

    Raises:
        ValueError: if the corpus or the folder cannot be used.
    """
    with FolderLock(settings.out, "gallery"), Stages("gallery") as stages:
        slow = slowness()
        plan.expect_data(stages, settings.corpus, slow)
        work, rates = plan.Work(settings.steps, 0), plan.Rates().times(slow)
        for name in settings.names():
            for stage, seconds, kind in work.stages(name, rates)[:3]:
                stages.expect(stage, seconds, kind)
        documents = quickstart_data.load_documents(settings.corpus, stages)
        data = quickstart_data.prepare(documents, recipe.BATCH_SIZE, settings.seed, stages)
        return make(settings, data, others_of(settings, data), stages)


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
        "size": settings.size,
        "steps": settings.steps,
        "tokens": settings.steps * recipe.BATCH_SIZE * quickstart_data.LENGTH,
        "seed": settings.seed,
        "corpus": data.facts["hash"],
    }


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
            "`keras-tupe gallery`, one picture per method.",
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


def make(settings, data, others, stages):
    """Trains all methods and writes pictures, facts and page; returns the page's text."""
    rows = held_out_rows(data)
    entries = [entry_of(name, data, settings, rows, stages) for name in settings.names()]
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
