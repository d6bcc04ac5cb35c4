"""BERT's learned absolute positions, added to the token vectors."""

from keras_tupe.layers import AbsolutePositionEmbedding
from keras_tupe.positions import PositionMethod, always, oracle


def embed(dims, options):
    """Returns the layer that adds p_i."""
    return AbsolutePositionEmbedding(
        dims.max_sequence_length,
        initializer=dims.initializer(),
        dtype=dims.dtype,
        name="position_embedding",
    )


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (x_i + p_i) W^Q . (x_j + p_j) W^K / sqrt(d)."""
    tokens = tokens + weights["position_embedding/embeddings"][: len(tokens)]
    return oracle.content_logits(tokens, weights, dims, num_terms=1)


METHOD = PositionMethod(
    summary="a learned vector per position, added to the token vectors",
    source="Devlin et al. 2019; Ke et al. 2021, eq. 3 (BERT-A)",
    logits_oracle=logits_oracle,
    embed=embed,
    has_length_limit=always,
    absolute_tables=("position_embedding/embeddings",),
)
