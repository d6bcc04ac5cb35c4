"""The four products of words and positions, against sums written out in NumPy."""

import numpy as np
import pytest
from keras import ops
from tolerances import in_float64

from keras_tupe import TupeBackbone
from keras_tupe.analysis import embedding_correlations

IDS = np.array([[2, 7, 11, 5, 3], [2, 19, 4, 3, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
HEADS, KEY_DIM = 2, 3
OPTIONS = [
    {"position": "absolute"},
    {"position": "bert_r", "normalize_first": True, "num_segments": 2},
    {"position": "sinusoidal", "embedding_dim": 7},
]


def scrambled(**options):
    """Returns a backbone in float64 whose weights are all random, biases included."""
    sizes = {"num_layers": 1, "num_heads": HEADS, "hidden_dim": HEADS * KEY_DIM}
    options = {"intermediate_dim": 11, "dropout": 0.0, "dtype": "float64", **sizes, **options}
    backbone, rng = TupeBackbone(23, max_sequence_length=5, **options), np.random.default_rng(0)
    for weight in backbone.weights:
        weight.assign(rng.normal(size=weight.shape))
    return backbone


def written_out(backbone):
    """Returns the four terms of a batch `(4, batch, heads, length, length)`, from eq. 6."""
    weights = {weight.path: ops.convert_to_numpy(weight) for weight in backbone.weights}
    terms = np.zeros((4, *IDS.shape[:1], HEADS, 5, 5))
    wave = np.array([[i / 10000 ** ((t - t % 2) / 7) for t in range(7)] for i in range(5)])
    wave = np.where(np.arange(7) % 2, np.cos(wave), np.sin(wave))
    places = weights.get("position_embedding/embeddings", wave)
    for b, row in enumerate(IDS):
        projected = []
        for i, token in enumerate(row):
            word, place = weights["token_embedding/embeddings"][token], places[i]
            if backbone.num_segments:
                word = word + weights["segment_embedding/embeddings"][0]

            def normalized(name, word, place):
                gamma, beta = weights[f"{name}/gamma"], weights[f"{name}/beta"]
                deviation = np.sqrt(np.var(word + place) + backbone.layer_norm_epsilon)
                word = gamma * (word - word.mean()) / deviation + beta
                return word, gamma * (place - place.mean()) / deviation

            word, place = normalized("embeddings_layer_norm", word, place)
            if backbone.embedding_dim:
                kernel = weights["embeddings_projection/kernel"]
                word = word @ kernel + weights["embeddings_projection/bias"]
                place = place @ kernel
            if backbone.normalize_first:
                word, place = normalized("block_0/attention_layer_norm", word, place)
            halves = {}
            for kind in ("query", "key"):
                kernel = weights[f"block_0/attention/{kind}/kernel"].reshape(len(word), -1)
                bias = weights[f"block_0/attention/{kind}/bias"].ravel()
                both = word @ kernel + bias, place @ kernel
                halves[kind] = [half.reshape(HEADS, KEY_DIM) for half in both]
            projected.append(halves)
        for term, h, i, j in np.ndindex(4, HEADS, 5, 5):
            query, key = projected[i]["query"][term // 2], projected[j]["key"][term % 2]
            terms[term, b, h, i, j] = query[h] @ key[h] / np.sqrt(KEY_DIM)
    return terms


@pytest.mark.parametrize("options", OPTIONS)
def test_the_four_terms_are_those_of_the_paper_and_sum_to_the_logits(options):
    backbone = scrambled(**options)
    found, expected = embedding_correlations(backbone, IDS, MASK), written_out(backbone)
    mean = expected.mean(axis=1)
    mean[..., 4, :] = expected[:, 0, :, 4, :]  # the second text ends before
    mean[..., 4] = expected[:, 0, :, :, 4]
    np.testing.assert_allclose(found, mean, rtol=in_float64(1e-10), atol=in_float64(1e-10))
    inputs = {"token_ids": IDS, "padding_mask": MASK, "segment_ids": np.zeros_like(IDS)}
    block, x = backbone.blocks[0], backbone.trunk.embedded(inputs)
    x = block.attention_norm(x) if block.normalize_first else x
    attention = block.attention
    logits = attention.all_logits(attention.query_dense(x), attention.key_dense(x))
    logits = ops.convert_to_numpy(logits)
    scale = np.abs(logits).max()
    np.testing.assert_allclose(expected.sum(axis=0), logits, atol=in_float64(1e-12) * scale)


def test_a_method_that_adds_no_positions_to_words_is_refused():
    backbone = TupeBackbone(23, 1, 2, 6, 11, position="tupe_a")
    with pytest.raises(ValueError, match="absolute, sinusoidal or bert_r. Received: tupe_a"):
        embedding_correlations(backbone, IDS, MASK)
