"""Every token attends to every token."""

from keras_tupe.attention_patterns import AttentionPattern


def allowed(i, j, length, layer, options):
    """All pairs."""
    return True


PATTERN = AttentionPattern(
    summary="every token attends to every token",
    source="Vaswani et al. 2017; Devlin et al. 2019",
    equation=r"0 \le j < n",
    allowed=allowed,
    visible=lambda layer, options: None,
)
