"""TUPE's baseline BERT-R: absolute positions at the input and T5's relative bias."""

import dataclasses

from keras_tupe.positions import absolute, t5


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (x_i + p_i) W^Q . (x_j + p_j) W^K / sqrt(d) + b[bucket(j - i)]."""
    tokens = tokens + weights["position_embedding/embeddings"][: len(tokens)]
    return t5.logits_oracle(tokens, weights, dims, options)


METHOD = dataclasses.replace(
    t5.METHOD,
    summary="absolute positions at the input plus T5's relative bias",
    source="Ke et al. 2021, eq. 5 (BERT-R)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + b_{\mathrm{bucket}(j - i)}, "
    r"\quad x_i = e_i + p_i",
    where={**absolute.METHOD.where, **t5.METHOD.where},
    shift_invariant=False,
    embed=absolute.METHOD.embed,
    has_length_limit=absolute.METHOD.has_length_limit,
    absolute_tables=absolute.METHOD.absolute_tables,
)
