"""BERT's learned absolute positions, added to the token vectors."""

from keras_tupe.layers import AbsolutePositionEmbedding
from keras_tupe.positions import PositionMethod, always, oracle


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (x_i + p_i) W^Q . (x_j + p_j) W^K / sqrt(d)."""
    tokens = tokens + weights["position_embedding/embeddings"][: len(tokens)]
    return oracle.content_logits(tokens, weights, dims, num_terms=1)


METHOD = PositionMethod(
    summary="a learned vector per position, added to the token vectors",
    source="Devlin et al. 2019; Ke et al. 2021, eq. 3 (BERT-A)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}}, \quad x_i = e_i + p_i",
    where={
        "x_i": "vector of token $i$ with its position; the first block receives it after layer "
        "normalization",
        "e_i": "embedding of token $i$",
        "p_i": "learned vector of position $i$, $D$ values, added once, before the first block",
    },
    embed=lambda dims, options: AbsolutePositionEmbedding(
        dims.max_sequence_length, dims.initializer(), dtype=dims.dtype, name="position_embedding"
    ),
    has_length_limit=always,
    prunes_heads=True,
    absolute_tables=("position_embedding/embeddings",),
)
