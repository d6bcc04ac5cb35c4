"""Figures 4 and 5 of Huang et al. 2020, of any encoder that has what they show."""

import numpy as np

from keras_tupe.analysis import distance_tables, mean_attention_scores, seen_keys
from training.draw.channels import draw_channels
from training.draw.drawings import Drawing, patterns_of_scores
from training.draw.heads import draw_scores


def drawing_of_channels(backbone, origin):
    """Returns the drawing of the vectors by distance of the first head of the first block.

    Args:
        backbone: a `TupeBackbone`.
        origin: where the weights are from, for the title.

    Raises:
        ValueError: if the method has no table of vectors by distance.
    """
    tables = distance_tables(backbone)
    name, table = next(iter(tables.items()), ("", None))
    if table is None or table.values.shape[-1] == 1:
        received = "scalars" if tables else "no table"
        raise ValueError(
            "--channels draws a table of vectors by distance, which shaw, qkr_3 and qkr_4 have. "
            f"Name one of these, or leave it out. Received: {backbone.position}, {received}"
        )
    is_shared = len(table.values) == 1
    head = "all heads" if is_shared else "head 0"
    file = f"{backbone.position}_channels.png"
    title = f"{backbone.position}, {origin}: vectors by distance, {name}, {head}"
    rows = [("all" if is_shared else "0", "-", "-", "-")]
    return Drawing(file, lambda path: draw_channels(path, table.values[0], title), rows)


def drawing_of_mean_heads(backbone, origin, token_ids, padding_mask, tokens):
    """Returns the drawing of attention scores averaged over the heads of each block.

    Equation (Huang et al. 2020, Fig. 5): 1 / H sum_h scores[h, i, j], also averaged over texts.

    Args:
        backbone, origin: as above.
        token_ids, padding_mask, tokens: see `training.draw.sources.tokenize`.
    """
    blocks = mean_attention_scores(backbone, token_ids, padding_mask).mean(axis=1)
    seen = [seen_keys(backbone, blocks.shape[-1], layer) for layer in range(len(blocks))]
    patterns = [
        patterns_of_scores(scores[None], is_seen)[0]
        for scores, is_seen in zip(blocks, seen, strict=True)
    ]
    titles = [f"block {layer}: {pattern}" for layer, pattern in enumerate(patterns)]
    texts = "one text" if len(token_ids) == 1 else f"mean over {len(token_ids)} texts"
    title = f"{backbone.position}, {origin}: attention scores, mean over heads, {texts}"
    shown = np.where(np.stack(seen), blocks, np.nan)
    rows = [("mean", name, "-", "-") for layer, name in enumerate(patterns)]
    return Drawing(
        f"{backbone.position}_mean_attention.png",
        lambda path: draw_scores(path, shown, titles, title, tokens),
        rows,
    )
