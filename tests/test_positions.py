"""The oracles of positional methods, against numbers worked out by hand.

That the layers are their oracles is in `test_position_promises.py`.
"""

import ast
import math
import pathlib

import numpy as np
from position_cases import BATCH, HEADS, KEY_DIM, MAX_LENGTH

from keras_tupe import positions


def oracle_logits(name, tokens, weights, max_length=5, **options):
    method = positions.get(name)
    dims = positions.Dims(num_heads=1, key_dim=2, max_sequence_length=max_length)
    identity = {f"attention/{side}/kernel": np.eye(2)[:, None] for side in ("query", "key")}
    zeros = {f"attention/{side}/bias": np.zeros((1, 2)) for side in ("query", "key")}
    values = {**identity, **zeros, **weights}
    logits = method.logits_oracle(
        np.array(tokens, "float64"), values, dims, method.resolve(options)
    )
    assert logits.shape == (1, len(tokens), len(tokens))
    return logits[0]


TOKENS = [[1, 0], [0, 2], [3, 1]]
PRODUCTS = np.array([[1, 0, 3], [0, 4, 2], [3, 2, 10]])


def test_by_hand_absolute_and_bert_r():
    none = PRODUCTS / math.sqrt(2)
    np.testing.assert_allclose(oracle_logits("none", TOKENS, {}), none)
    table = {"position_embedding/embeddings": np.array([[1, 1], [0, 0], [-2, 0], [9, 9], [9, 9]])}
    sums = np.array([[2, 1], [0, 2], [1, 1]])  # token + position
    expected = sums @ sums.T / math.sqrt(2)
    np.testing.assert_allclose(oracle_logits("absolute", TOKENS, table), expected)
    buckets = {"position_bias/relative/embeddings": np.arange(32.0)[:, None]}
    distance = np.array([[0, 17, 18], [1, 0, 17], [2, 1, 0]])  # bucket ids of j - i
    for name, content in (("bert_r", expected), ("t5", none)):
        got = oracle_logits(name, TOKENS, {**table, **buckets})
        np.testing.assert_allclose(got, content + distance)


def test_by_hand_sinusoidal():
    waves = np.array([[0, 1], [math.sin(1), math.cos(1)], [math.sin(2), math.cos(2)]])
    sums = np.array(TOKENS) + waves
    np.testing.assert_allclose(
        oracle_logits("sinusoidal", TOKENS, {}), sums @ sums.T / math.sqrt(2)
    )


def position_weights(prefix):
    """p_0..p_4 that a layer norm turns into (+-1, -+1), U^Q = 1, U^K = diag(2, 3)."""
    rows = np.array([[1.0, -1], [-1, 1], [5, -5], [1, -1], [1, -1]]) * 1e4
    return {
        f"{prefix}/embeddings": rows,
        f"{prefix}/layer_norm/gamma": np.ones(2),
        f"{prefix}/layer_norm/beta": np.zeros(2),
        f"{prefix}/query/kernel": np.eye(2)[:, None],
        f"{prefix}/key/kernel": np.diag([2.0, 3.0])[:, None],
    }


SIGNS = np.array([[1, -1, 1], [-1, 1, -1], [1, -1, 1]])  # p_i . p_j / 2 after the norm


def test_by_hand_tupe_a_and_tupe_r():
    weights = position_weights("position_bias/untied/projection")
    tied = (PRODUCTS + 5 * SIGNS) / math.sqrt(4)
    got = oracle_logits("tupe_a_tied_cls", TOKENS, weights)
    np.testing.assert_allclose(got, tied, atol=1e-7)
    weights["position_bias/untied/cls_embeddings"] = np.array([[2e4, -2e4], [-3e4, 3e4]])
    weights["position_bias/untied/projection/layer_norm/beta"] = np.array([1.0, 0.0])
    # The norm turns (1, -1) into a = (2, -1) and (-1, 1) into b = (0, 1).
    aa, bb, ab = 2 * 2 * 2 + 1 * 3, 1 * 3, -1 * 3
    position = np.array([[aa, ab, aa], [ab, bb, ab], [aa, ab, aa]])
    position[:, 0], position[0] = bb, aa  # theta_2 = b . b, theta_1 = a . a
    expected = (PRODUCTS + position) / math.sqrt(4)
    np.testing.assert_allclose(oracle_logits("tupe_a", TOKENS, weights), expected, atol=1e-7)
    buckets = np.arange(32.0)[:, None]
    weights["position_bias/relative/embeddings"] = buckets
    relative = np.array([[0, 0, 0], [0, 0, 17], [0, 1, 0]])  # reset where i or j is [CLS]
    got = oracle_logits("tupe_r", TOKENS, weights)
    np.testing.assert_allclose(got, expected + relative, atol=1e-7)


def test_by_hand_bert_ad():
    weights = position_weights("shared_positions")
    p = np.array([[1, -1], [-1, 1], [1, -1]])
    x = np.array(TOKENS)
    expected = (x + p) @ (x + p * [2, 3]).T / math.sqrt(8)
    np.testing.assert_allclose(oracle_logits("bert_ad", TOKENS, weights), expected, atol=1e-7)


def test_the_pieces_of_oracles_import_numpy_and_math_only():
    tree = ast.parse(pathlib.Path(positions.oracle.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {alias.name for node in imports for alias in node.names} == {"math", "numpy"}


def test_sizes_of_the_cases_are_different_primes():
    assert len({BATCH, HEADS, KEY_DIM, MAX_LENGTH, 7}) == 5
