"""Every positional method is its paper's equation: parity with its NumPy oracle."""

import ast
import importlib
import inspect
import math
import pathlib

import numpy as np
import pytest
from training.check_method.numpy_encoder import encode
from position_cases import (
    BATCH,
    CASES,
    ENCODER_CASES,
    HEADS,
    KEY_DIM,
    MAX_LENGTH,
    METHOD_NAMES,
    OTHER_OPTIONS,
    WIDTH,
    Case,
    inputs,
    method_layers,
    outputs,
    random_ids,
    shared_encoder,
)
from tolerances import in_float64

from keras_tupe import layers, positions

WITH_K = [name for name in METHOD_NAMES if "k" in positions.get(name).options]
LENGTHS = (1, 2, 3, 4, 7, MAX_LENGTH)  # 3, 4 and 7 are k, k + 1 and 2 k + 1 of the cases


def check_parity(method, lengths, padding, tolerance):
    """Compares logits, scores and the output of attention with the equation."""
    for length in lengths:
        tokens = np.random.default_rng(length).normal(size=(BATCH, length, WIDTH))
        num_real = length - padding
        mask = np.tile(np.arange(length) < num_real, (BATCH, 1)).astype("int32")
        logits, scores, output = method.run(tokens, mask if padding else None)
        assert (scores[:, :, :, num_real:] == 0).all(), "padded keys get exactly zero"
        assert np.isfinite(output).all()
        if not num_real:
            continue
        expected = method.oracle(tokens[:, :num_real])
        real = logits[:, :, :num_real, :num_real]
        np.testing.assert_allclose(real, expected, rtol=0, atol=tolerance)
        softmax = np.exp(expected - expected.max(-1, keepdims=True))
        softmax = softmax / softmax.sum(-1, keepdims=True)
        np.testing.assert_allclose(scores[:, :, :num_real, :num_real], softmax, atol=tolerance)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention_equals_the_papers_equation_in_float64(case, padding):
    check_parity(method_layers(case, "float64"), LENGTHS, padding, in_float64(1e-12))


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_attention_equals_the_papers_equation_in_float32(name, padding):
    check_parity(method_layers(Case(name), "float32"), LENGTHS, padding, 2e-5)


# Three blocks of rows; 70 is more than a block.
FAR = [Case(name, (("cls", "untied"), ("k", k))) for k in (3, 70) for name in WITH_K]


@pytest.mark.parametrize("case", [*map(Case, METHOD_NAMES), *FAR], ids=str)
def test_far_distances_equal_the_papers_equation(case):
    method = method_layers(case, "float64", max_length=139)
    tokens = np.random.normal(size=(1, 139, WIDTH))
    got, wanted = method.run(tokens)[0], method.oracle(tokens)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12))


@pytest.mark.parametrize("case", ENCODER_CASES, ids=str)
def test_the_whole_encoder_equals_bert_around_the_oracle(case):
    model = shared_encoder(case)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    got, wanted = outputs(model, given), encode(model, given)
    real = given["padding_mask"].astype(bool)
    np.testing.assert_allclose(got[0][real], wanted[0][real], rtol=0, atol=in_float64(1e-11))
    np.testing.assert_allclose(got[1], wanted[1], rtol=0, atol=in_float64(1e-11))


def test_every_option_of_every_method_is_varied():
    options = {key for name in METHOD_NAMES for key in positions.get(name).options}
    assert sorted(options - {key for other in OTHER_OPTIONS for key in other}) == []
    assert len(CASES) > len(METHOD_NAMES)


# The oracles against numbers worked out by hand, so that layer and oracle cannot err together.


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


def test_by_hand_none():
    np.testing.assert_allclose(oracle_logits("none", TOKENS, {}), PRODUCTS / math.sqrt(2))


def test_by_hand_absolute_and_bert_r():
    table = {"position_embedding/embeddings": np.array([[1, 1], [0, 0], [-2, 0], [9, 9], [9, 9]])}
    sums = np.array([[2, 1], [0, 2], [1, 1]])  # token + position
    expected = sums @ sums.T / math.sqrt(2)
    np.testing.assert_allclose(oracle_logits("absolute", TOKENS, table), expected)
    buckets = {"position_bias/relative/embeddings": np.arange(32.0)[:, None]}
    distance = np.array([[0, 17, 18], [1, 0, 17], [2, 1, 0]])  # bucket ids of j - i
    got = oracle_logits("bert_r", TOKENS, {**table, **buckets})
    np.testing.assert_allclose(got, expected + distance)
    got = oracle_logits("t5", TOKENS, buckets)
    np.testing.assert_allclose(got, PRODUCTS / math.sqrt(2) + distance)


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


# The oracles share nothing with the layers.


def module_tree(module):
    return ast.parse(pathlib.Path(module.__file__).read_text(encoding="utf-8"))


def names_reached(module, function):
    """Returns the functions that a function calls in the positions package, and all their names."""
    seen, todo, names = set(), [(module, function)], set()
    while todo:
        module, function = todo.pop()
        if (module, function) in seen:
            continue
        seen.add((module, function))
        (definition,) = [
            node
            for node in module_tree(module).body
            if isinstance(node, ast.FunctionDef) and node.name == function
        ]
        for node in ast.walk(definition):
            if isinstance(node, ast.Name):
                names.add(node.id)
                value = getattr(module, node.id, None)
                if inspect.isfunction(value):
                    todo.append((importlib.import_module(value.__module__), value.__name__))
                names.add(getattr(value, "__module__", None) or "")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                value = getattr(module, node.value.id, None)
                target = getattr(value, node.attr, None)
                in_positions = getattr(target, "__module__", "").startswith(positions.__name__)
                if inspect.isfunction(target) and in_positions:
                    todo.append((importlib.import_module(target.__module__), target.__name__))
                if inspect.ismodule(value):
                    names.add(value.__name__)
    return {(module.__name__, function) for module, function in seen}, names


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_an_oracle_names_neither_keras_nor_a_layer(name):
    oracle = positions.get(name).logits_oracle
    _, names = names_reached(importlib.import_module(oracle.__module__), oracle.__name__)
    assert "keras_tupe.positions.oracle" in names, "the search follows calls"
    allowed = "keras_tupe.positions"
    forbidden = {
        found
        for found in names
        if found.split(".")[0] in {"keras", "ops", "tensorflow", "jax", "layers"}
        or (found.startswith("keras_tupe") and not found.startswith(allowed))
        or found in layers.__all__
    }
    assert forbidden == set()


def test_the_pieces_of_oracles_import_numpy_and_math_only():
    tree = module_tree(importlib.import_module("keras_tupe.positions.oracle"))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {alias.name for node in imports for alias in node.names} == {"math", "numpy"}


def test_no_layer_uses_the_pieces_of_oracles():
    for file in pathlib.Path(layers.__file__).parent.rglob("*.py"):
        assert "oracle" not in file.read_text(encoding="utf-8"), file.name
    of_oracles = set()
    for name in METHOD_NAMES:
        oracle = positions.get(name).logits_oracle
        reached, _ = names_reached(importlib.import_module(oracle.__module__), oracle.__name__)
        of_oracles |= reached
    for name in METHOD_NAMES:
        module = f"{positions.__name__}.{name}"
        for node in module_tree(importlib.import_module(module)).body:
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            is_oracle = (module, getattr(node, "name", None)) in of_oracles
            assert is_oracle or "oracle" not in used, f"{name}, line {node.lineno}"


def test_sizes_of_the_cases_are_different_primes():
    assert len({BATCH, HEADS, KEY_DIM, MAX_LENGTH, 7}) == 5
