"""No position at all: the encoder sees a bag of words."""

from keras_tupe.positions import PositionMethod, memory_unless_untied, oracle


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d)."""
    return oracle.content_logits(tokens, weights, dims, num_terms=1)


METHOD = PositionMethod(
    summary="no positions: a bag of words",
    source="baseline (NoPE)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}}",
    where={"x_i": "vector of token $i$, which says nothing about its position"},
    shift_invariant=True,
    sees_order=False,
    prunes_heads=True,
    starts_as_none=True,
    refused_memory=memory_unless_untied,
)
