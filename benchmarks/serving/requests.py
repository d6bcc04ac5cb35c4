"""Requests of the clients: texts of mixed lengths, or their like in ids."""

import numpy as np

from benchmarks.serving.models import TEXT, WORDS

SEED = 11
FIRST_ID, END_ID = 5, 60  # ids that any vocabulary has
ODD_TEXTS = ("", "[MASK]", "Caf\u00e9 \u5317\u4eac \U0001f600?", "x" * 400, "\t", '"\\n"')


def make(served, count):
    """Returns the inputs of each request.

    Most have one row, every eighth has three. Texts have 0 to 80 words, more than fit into most
    lengths; the first ones are odd. Rows of ids have 2 to `length` tokens and then padding.

    Args:
        served: a `Served`.
        count: number of requests.

    Returns:
        A list of dictionaries, input name -> list with an item for each row.
    """
    generator = np.random.default_rng(SEED)
    row = _text if served.kind == TEXT else _ids
    return [
        _joined([row(generator, served.length) for _ in range(3 if index % 8 == 7 else 1)])
        if served.kind != TEXT or index >= len(ODD_TEXTS)
        else {"text": [ODD_TEXTS[index]]}
        for index in range(count)
    ]


def rows(request):
    """Returns the number of rows of a request."""
    return len(next(iter(request.values())))


def _joined(found):
    return {name: [row[name] for row in found] for name in found[0]}


def _text(generator, length):
    words = generator.choice(WORDS, generator.integers(0, 81))
    return {"text": " ".join(words)}


def _ids(generator, length):
    size = int(generator.integers(2, length + 1))
    padding = [0] * (length - size)
    return {
        "input_word_ids": generator.integers(FIRST_ID, END_ID, size).tolist() + padding,
        "input_mask": [1] * size + padding,
        "input_type_ids": [0] * length,
    }
