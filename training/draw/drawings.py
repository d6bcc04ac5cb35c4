"""The drawings of an encoder, computed before anything is written."""

import dataclasses
from collections.abc import Callable

import numpy as np

from keras_tupe.analysis import (
    cls_attention,
    correlation_rank,
    distance_tables,
    mean_attention_scores,
    name_patterns,
    position_logits,
    seen_keys,
    toeplitz_energy,
)
from training.draw.distance_tables import draw_tables
from training.draw.heads import draw_logits, draw_scores

REPEATED_TOKENS = 64
SMALLEST_SCORE = 1e-9  # its logarithm stands for a score of zero


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A picture that is ready to be drawn.

    Attributes:
        file: name of the PNG file.
        write: draws it: (path) -> None.
        rows: list of (head, pattern, Toeplitz energy, rank), as strings, for the table.
        note: a sentence on why it shows nothing, if it does not.
        cls_rows: list of (block, head, received, given, evenly received, evenly given) of attention
            scores, as strings, for the table of [CLS].
    """

    file: str
    write: Callable
    rows: list
    note: str = ""
    cls_rows: list = dataclasses.field(default_factory=list)


def drawings_of(backbone, length, origin, text=None):
    """Returns the pictures of an encoder, a list of `Drawing`.

    Args:
        backbone: a `TupeBackbone`.
        length: number of tokens of the position logits, [CLS] included.
        origin: where the weights are from, for the titles.
        text: optional triple of ids, padding mask and tokens, see `training.draw.sources.tokenize`.

    Raises:
        ValueError: if there is nothing to draw.
    """
    name = backbone.position
    found = [_logits(backbone, length, origin), _tables(backbone, origin)]
    found = [drawing for drawing in found if drawing]
    if text is not None:
        found += _scores(backbone, origin, *text)
    if not found:
        raise ValueError(
            f"The method {name!r} has nothing to draw: whatever token stands there, its attention "
            "logits are the same in all places, and it has no table of distances. Give a trained "
            "--model and a --text to draw attention scores. "
            f"Received: {name}, {origin}, without --text"
        )
    return found


def telling_logits(backbone, length):
    """Returns the position logits of an encoder's first block, if they tell positions apart.

    Args:
        backbone: a `TupeBackbone`.
        length: number of tokens, [CLS] included.

    Returns:
        `(logits, is_of_tokens)`: `(heads, length, length)`, of tokens without content, or, where
        softmax would see no more than rounding in those, the mean over tokens that stand at every
        position; `(None, True)` where neither tells positions apart.
    """
    ids = np.linspace(0, backbone.vocabulary_size - 1, REPEATED_TOKENS).astype("int32")
    for repeated in (None, np.unique(ids)):
        logits = position_logits(backbone, length, repeated)
        spread = np.abs(logits - logits.mean(axis=-1, keepdims=True)).max()
        if spread > 1e-5 * np.abs(logits).max():
            return logits, repeated is not None
    return None, True


def _logits(backbone, length, origin):
    logits, is_of_tokens = telling_logits(backbone, length)
    if logits is None:
        return None
    content = "tokens without content"
    if is_of_tokens:
        content = f"one token in all places, mean over {REPEATED_TOKENS} tokens"
    is_seen = seen_keys(backbone, length)
    if not is_seen.all():
        return _partly_seen_logits(backbone, logits, is_seen, origin, content)
    patterns, words = name_patterns(logits), logits[:, 1:, 1:]
    energies, ranks = toeplitz_energy(words), correlation_rank(words)
    titles = [
        f"head {head}: {pattern}\nToeplitz {energy:.0%}, rank {rank}"
        for head, (pattern, energy, rank) in enumerate(zip(patterns, energies, ranks, strict=True))
    ]
    title = (
        f"{backbone.position}, {origin}: position logits of the first block\n"
        f"({content}; without constants of rows, which softmax ignores)"
    )
    rows = [
        (str(head), pattern, f"{energy:.3f}", f"{rank} of {length - 1}")
        for head, (pattern, energy, rank) in enumerate(zip(patterns, energies, ranks, strict=True))
    ]
    return Drawing(
        f"{backbone.position}_position_logits.png",
        lambda path: draw_logits(path, logits, titles, title),
        rows,
    )


def _partly_seen_logits(backbone, logits, is_seen, origin, content):
    """Returns the drawing where words do not see all others; what they do not see has no color."""
    patterns = name_patterns(logits, is_seen)
    titles = [f"head {head}: {pattern}\n" for head, pattern in enumerate(patterns)]
    title = (
        f"{backbone.position}, {backbone.attention_pattern} attention, {origin}: position logits "
        f"of the first block\n({content}; each row without its mean over the words that it sees)"
    )
    shown = np.where(is_seen, logits, np.nan)
    return Drawing(
        f"{backbone.position}_position_logits.png",
        lambda path: draw_logits(path, shown, titles, title),
        [(str(head), pattern, "-", "-") for head, pattern in enumerate(patterns)],
    )


def _tables(backbone, origin):
    tables = distance_tables(backbone)
    if not tables:
        return None
    title, note = f"{backbone.position}, {origin}: weights by distance", ""
    values = np.concatenate([table.values.ravel() for table in tables.values()])
    if np.ptp(values) == 0:
        title += f"\n(all are {values[0]:g}, until training moves them)"
        note = (
            f"All weights by distance of {backbone.position} are {values[0]:g} at first, so the "
            "lines are equal and flat: draw a trained --model to see a difference."
        )
    return Drawing(
        f"{backbone.position}_distance_tables.png",
        lambda path: draw_tables(path, tables, title),
        [("all", "-", "-", "-")],
        note,
    )


def patterns_of_scores(scores, is_seen=None):
    """Returns the names of the patterns of attention scores `(heads, length, length)`.

    Args:
        scores: the scores.
        is_seen: as in `name_patterns`.
    """
    return name_patterns(np.log(np.maximum(scores, SMALLEST_SCORE)), is_seen)


def _scores(backbone, origin, token_ids, padding_mask, tokens):
    layers = mean_attention_scores(backbone, token_ids, padding_mask)
    texts = "one text" if len(token_ids) == 1 else f"mean over {len(token_ids)} texts"
    found = []
    for layer, scores in enumerate(layers):
        is_seen = seen_keys(backbone, scores.shape[-1], layer)
        patterns = patterns_of_scores(scores, is_seen)
        scores = np.where(is_seen, scores, np.nan)
        titles = [f"head {head}: {pattern}" for head, pattern in enumerate(patterns)]
        title = f"{backbone.position}, {origin}: attention scores of block {layer}, {texts}"

        def write(path, scores=scores, titles=titles, title=title):
            draw_scores(path, scores, titles, title, tokens)

        rows = [(str(head), pattern, "-", "-") for head, pattern in enumerate(patterns)]
        file = f"{backbone.position}_attention_block_{layer}.png"
        found.append(Drawing(file, write, rows, cls_rows=_cls_rows(layer, layers[layer], is_seen)))
    return found


def _cls_rows(layer, scores, is_seen):
    """Returns the shares of [CLS] in a block, and what they are where nothing is preferred."""
    even = cls_attention(is_seen / is_seen.sum(axis=-1, keepdims=True))
    return [
        (str(layer), str(head), *(f"{share:.1%}" for share in (received, given, *even)))
        for head, (received, given) in enumerate(zip(*cls_attention(scores), strict=True))
    ]
