"""The demo's report: small tables and one picture."""

import pathlib

from keras_tupe._json_file import read_json_object
from training.command.report import replaced_file, table
from training.demo.knowledge import Knowledge
from training.demo.sentences import BLANKS, QUESTIONS, SENTENCES, shuffled
from training.demo.settings import PRESET

SHOWN = 2  # sentences of the table of word order
NEXT = """\
Next:
    keras-tupe query saved_models/novels --text "He looked at [MASK] watch."
    keras-tupe quickstart                     train three methods and compare them, in minutes
    keras-tupe quickstart --corpus my.txt     the same with your own text
The documentation is in docs/pages/index.md; `python -m docs` builds it, with search."""


def show(settings):
    """Asks the model what it knows, prints that, and draws its heads.

    Args:
        settings: a `Settings` without problems.

    Raises:
        ValueError, OSError: if the model cannot be used, or the picture not written.
    """
    known = Knowledge(settings.folder / PRESET)
    print(_introduction(known, settings))
    print(f"\n1. Words for a blank, with their probabilities\n{_blanks(known, BLANKS)}")
    print(
        f"\n2. The nearest of {len(SENTENCES)} sentences, by the cosine of their vectors\n"
        f"{_nearest(known, QUESTIONS, 2)}"
    )
    print(
        f"\n3. Word order: mean log probability of the words, each hidden in turn\n{_order(known)}"
    )
    drawing = known.drawing(f"trained, {settings.folder.name}")
    out = pathlib.Path(settings.out)
    replaced_file(out, drawing.write)
    rows = [[head, pattern, f"{float(share):.0%}"] for head, pattern, share, _ in drawing.rows]
    print(
        f"\n4. Where its heads look for their position alone, drawn in {out}\n"
        f"{table(['head', 'looks at', 'by distance alone'], rows, right=(2,))}"
    )
    print(f"\n{NEXT}")


def _introduction(known, settings):
    backbone, name = known.model.backbone, settings.folder.name
    text = (
        f"{name}: an encoder with {backbone.position}, {backbone.num_layers} layers, hidden size "
        f"{backbone.hidden_dim}, {backbone.count_params():,} parameters"
    )
    metrics = read_json_object(settings.folder / "card.json").get("metrics", {})
    if settings.model is None and "valid_accuracy" in metrics:
        text += (
            ".\nIt has read English novels of 1839 to 1929, and guesses "
            f"{metrics['valid_accuracy']:.0%} of the hidden pieces of unread text"
        )
    return f"{text}."


def _blanks(known, texts):
    rows = [
        [text, ", ".join(f"{piece} {share:.0%}" for piece, share in found)]
        for text, found in zip(texts, known.fill(list(texts)), strict=True)
    ]
    return table(["sentence", "likeliest pieces"], rows)


def _nearest(known, texts, count):
    rows = []
    for text, found in zip(texts, known.nearest(list(texts), list(SENTENCES)), strict=True):
        for sentence, cosine in found[:count]:
            rows.append([text, sentence, f"{cosine:.2f}"])
            text = ""
    return table(["question", "nearest", "cosine"], rows, right=(2,))


def _order(known):
    texts = [*SENTENCES, *map(shuffled, SENTENCES)]
    count = len(SENTENCES)
    scores = known.log_probabilities(texts)
    written, other = scores[:count], scores[count:]
    chosen = [place for index in range(SHOWN) for place in (index, count + index)]
    rows = [[texts[place], f"{scores[place]:.2f}"] for place in chosen]
    rows.append([f"mean of {count} such sentences, as written", f"{written.mean():.2f}"])
    rows.append(["mean, with their words in another order", f"{other.mean():.2f}"])
    return (
        f"{table(['sentence', 'per word'], rows, right=(1,))}\n"
        f"Likelier as written: {(written > other).sum()} of {count}. Without positions the numbers "
        "would be equal."
    )
