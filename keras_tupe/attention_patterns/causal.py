"""Masked self-attention: every token attends to itself and to what came before it."""

from keras_tupe.attention_patterns import AttentionPattern, Visible


def allowed(i, j, length, layer, options):
    """Keys up to the query."""
    return j <= i


PATTERN = AttentionPattern(
    summary="a token attends to itself and what came before it, as in GPT",
    source="Vaswani et al. 2017, Sec. 3.2.3; Radford et al. 2018",
    equation=r"j \le i",
    allowed=allowed,
    visible=lambda layer, options: Visible(right=0),
)
