"""The drawings of encoders, all computed before anything is written."""

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np

from keras_tupe.analysis import (
    CORRELATIONS,
    cls_attention,
    correlation_rank,
    distance_tables,
    embedding_correlations,
    mean_attention_scores,
    name_patterns,
    position_logits,
    seen_keys,
    toeplitz_energy,
)
from training.command.folder_lock import FolderLock
from training.command.report import replaced_file
from training.draw import sources
from training.draw.pictures import draw_channels, draw_logits, draw_scores, draw_tables
from training.draw.settings import LENGTH

REPEATED_TOKENS = 64
SMALLEST_SCORE = 1e-9  # its logarithm stands for a score of zero


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A picture that is ready to be drawn, and its rows of tables, of strings."""

    file: str  # name of the PNG file
    write: Callable  # draws it: (path) -> None
    rows: list  # of (head, pattern, Toeplitz energy, rank)
    note: str = ""  # a sentence on why it shows nothing, or on what it shows
    # (block, head, received, given, evenly received, evenly given) of attention scores of [CLS]
    cls_rows: list = dataclasses.field(default_factory=list)


def draw(settings):
    """Makes all pictures that are asked for, then writes them; returns the `Drawing`s."""
    drawings, folder = _drawings(settings), pathlib.Path(settings.out)
    with FolderLock(folder, "draw"):
        for drawing in drawings:
            replaced_file(folder / drawing.file, drawing.write)
    return drawings


def _drawings(settings):
    names = {name: sources.load_method(name) for name in settings.methods}
    files = {name for name in names if name.endswith(".py")}
    figures = {name: getattr(settings, name) for name in ("channels", "mean_heads", "correlations")}
    if settings.model is None:
        length, found = settings.length or LENGTH, []
        origin = f"at initialization ({settings.size}, seed {settings.seed})"
        for argument, name in names.items():
            with sources.blaming(files & {argument}):
                encoder = sources.initial_encoder(name, settings.size, length, settings.seed)
                found += drawings_of(encoder, length, origin, **figures)
        return found
    encoder = sources.saved_encoder(settings.model, list(names.values()))
    length = settings.length or min(LENGTH, encoder.max_sequence_length)
    origin = f"preset {'/'.join(pathlib.Path(settings.model).resolve().parts[-2:])}"
    text = None
    if settings.text:
        text = sources.tokenize(settings.model, sources.read_texts(settings.text), length)
    with sources.blaming(files):
        return drawings_of(encoder, length, origin, text, **figures)


def drawings_of(
    backbone, length, origin, text=None, channels=False, mean_heads=False, correlations=False
):
    """Returns the pictures of a `TupeBackbone`, a list of `Drawing`; a ValueError if there is none.

    Position logits are of `length` tokens, [CLS] included. The `origin` of the weights is for the
    titles; a `text` is ids, padding mask and tokens, see `training.draw.sources.tokenize`;
    `channels`, `mean_heads` and `correlations` are as the settings.
    """
    name = backbone.position
    found = [_logits(backbone, length, origin), _tables(backbone, origin)]
    found = [drawing for drawing in found if drawing]
    if text is not None:
        found += _scores(backbone, origin, mean_heads, *text)
        found += [_correlations(backbone, origin, *text)] if correlations else []
    if not found:
        raise ValueError(
            f"The method {name!r} has nothing to draw: whatever token stands there, its attention "
            "logits are the same in all places, and it has no table of distances. Give a trained "
            "--model and a --text to draw attention scores. "
            f"Received: {name}, {origin}, without --text"
        )
    return [*found, _channels(backbone, origin)] if channels else found


def telling_logits(backbone, length):
    """Returns `(logits, is_of_tokens)` of an encoder's first block, if they tell positions apart.

    The logits `(heads, length, length)`, [CLS] included, are of tokens without content, or, where
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
    heads = [str(head) for head in range(len(logits))]
    return _signed(backbone, origin, "position_logits", logits, heads, content)


def _signed(backbone, origin, what, logits, heads, content, note=""):
    """Returns a drawing of logits of the first block, a panel for each of `heads`, texts."""
    name, length = backbone.position, logits.shape[-1]
    is_seen = seen_keys(backbone, length)
    patterns = name_patterns(logits, None if is_seen.all() else is_seen)
    facts, texts = [("-", "-")] * len(logits), [""] * len(logits)
    if is_seen.all():
        without = "without constants of rows, which softmax ignores"
        words = logits[:, 1:, 1:]
        energies, ranks = toeplitz_energy(words), correlation_rank(words)
        each = list(zip(energies, ranks, strict=True))
        facts = [(f"{energy:.3f}", f"{rank} of {length - 1}") for energy, rank in each]
        texts = [f"Toeplitz {energy:.0%}, rank {rank}" for energy, rank in each]
    else:  # what words do not see has no color
        without = "each row without its mean over the words that it sees"
        name += f", {backbone.attention_pattern} attention"
        logits = np.where(is_seen, logits, np.nan)
    titles = [
        f"head {head}: {pattern}\n{text}"
        for head, pattern, text in zip(heads, patterns, texts, strict=True)
    ]
    shown = what.replace("_", " ")
    title = f"{name}, {origin}: {shown} of the first block\n({content}; {without})"
    return Drawing(
        f"{backbone.position}_{what}.png",
        lambda path: draw_logits(path, logits, titles, title),
        [
            (head, pattern, *fact)
            for head, pattern, fact in zip(heads, patterns, facts, strict=True)
        ],
        note,
    )


def _correlations(backbone, origin, token_ids, padding_mask, tokens):
    """Returns the drawing of the products of words and positions, a line of panels per head."""
    terms = embedding_correlations(backbone, token_ids, padding_mask)
    length, panels = terms.shape[-1], list(np.ndindex(terms.shape[1], len(terms)))
    is_seen = seen_keys(backbone, length)[1:, 1:]
    words = np.where(is_seen, terms[..., 1:, 1:], np.nan)
    words -= np.nanmean(words, axis=-1, keepdims=True)
    sizes = np.sqrt(np.nanmean(words**2, axis=(1, 2, 3)))
    each = [f"{name} {size:.3g}" for name, size in zip(CORRELATIONS, sizes, strict=True)]
    note = "Root mean square between words, without constants of rows, over all heads: "
    return _signed(
        backbone,
        origin,
        "correlations",
        np.stack([terms[term, head] for head, term in panels]),
        [f"{head}, {CORRELATIONS[term]}" for head, term in panels],
        "one text" if len(token_ids) == 1 else f"mean over {len(token_ids)} texts",
        f"{note}{', '.join(each)}.",
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
    """Returns the names of the patterns of attention scores, see `name_patterns`."""
    return name_patterns(np.log(np.maximum(scores, SMALLEST_SCORE)), is_seen)


def _scores(backbone, origin, mean_heads, token_ids, padding_mask, tokens):
    layers = mean_attention_scores(backbone, token_ids, padding_mask)
    texts = "one text" if len(token_ids) == 1 else f"mean over {len(token_ids)} texts"
    seen = [seen_keys(backbone, layers.shape[-1], layer) for layer in range(len(layers))]

    def drawing(file, scores, names, patterns, title, **rest):
        titles = [f"{name}: {pattern}" for name, pattern in zip(names, patterns, strict=True)]
        title = f"{backbone.position}, {origin}: attention scores{title}, {texts}"
        return Drawing(
            f"{backbone.position}_{file}.png",
            lambda path: draw_scores(path, scores, titles, title, tokens),
            **rest,
        )

    found = []
    for layer, (scores, is_seen) in enumerate(zip(layers, seen, strict=True)):
        patterns = patterns_of_scores(scores, is_seen)
        found.append(
            drawing(
                f"attention_block_{layer}",
                np.where(is_seen, scores, np.nan),
                [f"head {head}" for head in range(len(scores))],
                patterns,
                f" of block {layer}",
                rows=[(str(head), pattern, "-", "-") for head, pattern in enumerate(patterns)],
                cls_rows=_cls_rows(layer, scores, is_seen),
            )
        )
    if mean_heads:  # 1 / H sum_h scores[h, i, j]
        blocks = layers.mean(axis=1)
        patterns = [
            patterns_of_scores(scores[None], is_seen)[0]
            for scores, is_seen in zip(blocks, seen, strict=True)
        ]
        found.append(
            drawing(
                "mean_attention",
                np.where(np.stack(seen), blocks, np.nan),
                [f"block {layer}" for layer in range(len(blocks))],
                patterns,
                ", mean over heads",
                rows=[("mean", pattern, "-", "-") for pattern in patterns],
            )
        )
    return found


def _channels(backbone, origin):
    tables = distance_tables(backbone)
    name, table = next(iter(tables.items()), ("", None))
    if table is None or table.values.shape[-1] == 1:
        received = "scalars" if tables else "no table"
        raise ValueError(
            "--channels draws a table of vectors by distance, which shaw, qkr_3 and qkr_4 have. "
            f"Name one of these, or leave it out. Received: {backbone.position}, {received}"
        )
    head = "0" if len(table.values) > 1 else "all"
    words = "head 0" if head == "0" else "all heads"
    title = f"{backbone.position}, {origin}: vectors by distance, {name}, {words}"
    return Drawing(
        f"{backbone.position}_channels.png",
        lambda path: draw_channels(path, table.values[0], title),
        [(head, "-", "-", "-")],
    )


def _cls_rows(layer, scores, is_seen):
    """Returns the shares of [CLS] in a block, and what they are where nothing is preferred."""
    even = cls_attention(is_seen / is_seen.sum(axis=-1, keepdims=True))
    return [
        (str(layer), str(head), *(f"{share:.1%}" for share in (received, given, *even)))
        for head, (received, given) in enumerate(zip(*cls_attention(scores), strict=True))
    ]
