"""Matrices of distances, and the products with their vectors: values, gradients, and sizes."""

import keras
import numpy as np
import pytest
from keras import ops
from tolerances import in_float64

from keras_tupe.layers.attention.backend import loop
from keras_tupe.layers.attention.distance_terms import (
    DistanceWeightedProducts,
    KeyDistances,
    QueryDistances,
)
from keras_tupe.layers.attention.distances import MOST_TILES, expand_distances, tiles
from keras_tupe.layers.attention.row_block import RowBlock, whole_sequence

# Lengths around the size of a tile, 64, and distances around it and around the length.
SIZES = [
    (length, reach)
    for length in (1, 2, 3, 63, 64, 65, 139, 200)
    for reach in (1, 2, 63, 64, 70, 138, 300)
]
# Each length and each distance, and those of one size.
FEW_SIZES = [(1, 1), (2, 300), (3, 2), (63, 64), (64, 63), (65, 64), (65, 70), (139, 138), (200, 1)]


def query_term(q, k, table):
    return QueryDistances(q, table)


def key_term(q, k, table):
    return KeyDistances(k, table)


PRODUCTS = {
    "query": ("bhtd,htsd->bhts", query_term),
    "key": ("bhsd,htsd->bhts", key_term),
    "multiplicative": ("bhtd,bhsd,htsd->bhts", DistanceWeightedProducts),
}


def products(name, q, k, table, way="whole", size=50):
    """Returns what the term of a name gives, all rows at once or in blocks, batch first."""
    term = PRODUCTS[name][1](ops.swapaxes(q, 0, 1), ops.swapaxes(k, 0, 1), table).in_rows()
    length = ops.shape(q)[2]
    if way == "whole":
        blocks = [whole_sequence(length)]
    elif way == "blocks":
        blocks = [RowBlock(i, min(size, length - i), length) for i in range(0, length, size)]
    if way != "loop":
        found = [
            term.on(0.0, [x[:, :, b.start : b.end] for x in term.rows], term.keys, term.whole, b)
            for b in blocks
        ]
        return ops.swapaxes(ops.concatenate(found, axis=2), 0, 1)
    count = -(-length // size)
    term = term.in_loop(length, size)
    rows = [ops.pad(x, ((0, 0), (0, 0), (0, count * size - length), (0, 0))) for x in term.rows]
    rows = [ops.stack(ops.split(x, count, axis=2)) for x in rows]

    def step(index, sums, rows):
        block = RowBlock(index * size, size, length)
        return sums, [term.on(0.0, rows, term.keys, term.whole, block)]

    like = [("float64", (q.shape[1], q.shape[0], size, length))]
    _, (found,) = loop(step, count, [], rows, like)
    found = ops.concatenate(ops.unstack(found, count), axis=2)
    return ops.swapaxes(found[:, :, :length], 0, 1)


def random_inputs(length, reach, heads=2, table_heads=2):
    rng = np.random.default_rng(length + reach)
    q, k = rng.normal(size=(2, 3, heads, length, 5))
    return q, k, rng.normal(size=(2 * reach + 1, table_heads, 5))


def vectors_of_pairs(table, length, heads):
    reach = len(table) // 2
    place = np.arange(length)
    rows = np.clip(place - place[:, None], -reach, reach) + reach
    vectors = np.transpose(table[rows], (2, 0, 1, 3))  # (h, n, n, d), fine for an oracle
    return np.broadcast_to(vectors, (heads, *vectors.shape[1:]))


def expected(name, q, k, table):
    equation, _ = PRODUCTS[name]
    used = {"query": (q,), "key": (k,), "multiplicative": (q, k)}[name]
    return np.einsum(equation, *used, vectors_of_pairs(table, q.shape[2], q.shape[1]))


def tensors(*arrays):
    return [ops.convert_to_tensor(array, dtype="float64") for array in arrays]


@pytest.mark.parametrize("sizes", [FEW_SIZES, pytest.param(SIZES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["whole", "blocks", "loop"])
@pytest.mark.parametrize("table_heads", [1, 2])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_equal_those_with_a_vector_per_pair(name, table_heads, way, sizes):
    for length, reach in sizes:
        arrays = random_inputs(length, reach, table_heads=table_heads)
        got = ops.convert_to_numpy(products(name, *tensors(*arrays), way=way))
        wanted = expected(name, *arrays)
        np.testing.assert_allclose(
            got, wanted, rtol=0, atol=in_float64(1e-12), err_msg=f"n={length} k={reach}"
        )


@pytest.mark.parametrize(
    ("length", "reach"),
    [
        (139, 3),
        (7, 6),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((7, 3), (139, 70), (70, 69))),
    ],
)
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_equal_those_of_a_vector_per_pair(name, length, reach, tensorflow):
    arrays = random_inputs(length, reach)
    rng = np.random.default_rng(9)
    upstream = rng.normal(size=(3, 2, length, length))
    inputs = [tensorflow.constant(array) for array in arrays]

    @tensorflow.function
    def gradients(q, k, table):
        with tensorflow.GradientTape() as tape:
            tape.watch([q, k, table])
            loss = tensorflow.reduce_sum(products(name, q, k, table) * upstream)
        return tape.gradient(loss, [q, k, table])

    got = gradients(*inputs)
    vectors = vectors_of_pairs(arrays[2], length, 2)
    q, k, _ = arrays
    by_pair = {
        "query": (np.einsum("bhts,htsd->bhtd", upstream, vectors), None),
        "key": (None, np.einsum("bhts,htsd->bhsd", upstream, vectors)),
        "multiplicative": (
            np.einsum("bhts,bhsd,htsd->bhtd", upstream, k, vectors),
            np.einsum("bhts,bhtd,htsd->bhsd", upstream, q, vectors),
        ),
    }[name]
    of_pairs = {
        "query": lambda: np.einsum("bhts,bhtd->htsd", upstream, q),
        "key": lambda: np.einsum("bhts,bhsd->htsd", upstream, k),
        "multiplicative": lambda: np.einsum("bhts,bhtd,bhsd->htsd", upstream, q, k),
    }[name]()
    of_table = np.zeros_like(arrays[2])
    for i, j in np.ndindex(length, length):
        of_table[np.clip(j - i, -reach, reach) + reach] += of_pairs[:, i, j]
    for tensor, wanted in zip(got, (*by_pair, of_table), strict=True):
        assert (tensor is None) == (wanted is None)
        if wanted is not None:
            np.testing.assert_allclose(tensor, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("shape", "reach"),
    [
        ((None, 2, None, 5), 3),
        ((None, 2, 139, 5), 138),
        ((3, 2, None, 5), 138),
        pytest.param((None, 2, None, 5), 138, marks=pytest.mark.slow),
        pytest.param((None, 2, 139, 5), 3, marks=pytest.mark.slow),
        pytest.param((3, 2, None, 5), 3, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", PRODUCTS)
def test_one_graph_serves_sizes_that_are_not_known_before(name, reach, shape, tensorflow):
    of_words = tensorflow.TensorSpec(shape, "float64")
    of_table = tensorflow.TensorSpec((2 * reach + 1, 2, 5), "float64")

    @tensorflow.function(input_signature=[of_words, of_words, of_table])
    def by_pair(q, k, table):
        return products(name, q, k, table)

    for length in (1, 2, 20, 139):
        if shape[2] in (None, length):
            arrays = random_inputs(length, reach)
            got = by_pair(*map(tensorflow.constant, arrays))
            np.testing.assert_allclose(got, expected(name, *arrays), rtol=0, atol=1e-12)
    assert by_pair.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("reach", [8, 299])
@pytest.mark.parametrize("name", PRODUCTS)
def test_no_tensor_has_a_vector_per_pair_forward_or_backward(name, reach, tensorflow):
    length, dim = 300, 41
    q = tensorflow.TensorSpec((2, 3, length, dim))
    table = tensorflow.TensorSpec((2 * reach + 1, 3, dim))

    @tensorflow.function
    def gradients(q, k, table):
        with tensorflow.GradientTape() as tape:
            tape.watch([q, k, table])
            loss = tensorflow.reduce_sum(products(name, q, k, table) ** 2)
        return tape.gradient(loss, [q, k, table])

    graph = gradients.get_concrete_function(q, q, table).graph
    graphs, seen = [graph], []
    while graphs:
        graph = graphs.pop()
        seen += [output.shape for op in graph.get_operations() for output in op.outputs]
        graphs += [
            getattr(function, "graph", None) or function.graph
            for function in graph._functions.values()
            if getattr(function, "graph", None) is not None
        ]
    sizes = [shape.num_elements() for shape in seen if shape.num_elements()]
    pairs = 2 * 3 * length * length
    assert max(sizes) >= pairs, "the logits themselves"
    assert max(sizes) < 3 * pairs, "a tensor of (n, n, d) has 41 times as many elements"


@pytest.mark.parametrize("length", [1, 2, 7])
def test_entry_i_j_of_the_expansion_is_the_value_of_distance_j_minus_i(length):
    values = np.random.normal(size=(3, 2 * length))
    out = ops.convert_to_numpy(expand_distances(ops.convert_to_tensor(values), length))
    assert out.shape == (3, length, length)
    for i in range(length):
        for j in range(length):
            np.testing.assert_array_equal(out[:, i, j], values[:, length - 1 + j - i])


def test_tiles_cover_all_rows():
    for length in (1, 64, 65, 139, 1000, 5000):
        found = tiles(7, 7 + length)
        assert len(found) <= MOST_TILES
        rows = np.concatenate([np.arange(*ends) for ends in found])
        np.testing.assert_array_equal(rows, np.arange(7, 7 + length))
        sizes = [end - start for start, end in found]
        assert sizes == sorted(sizes, reverse=True)


def test_a_compiled_model_trains_with_the_compiled_loop_in_it(tensorflow):
    q, k, table = random_inputs(70, 3)

    @tensorflow.function(jit_compile=True)
    def whole(q, k, table):
        with tensorflow.GradientTape() as tape:
            tape.watch(table)
            loss = tensorflow.reduce_sum(products("multiplicative", q, k, table) ** 2)
        return tape.gradient(loss, table)

    plain = 2 * expected("multiplicative", q, k, table)
    pairs = np.einsum("bhts,bhtd,bhsd->htsd", plain, q, k)
    wanted = np.zeros_like(table)
    for i, j in np.ndindex(70, 70):
        wanted[np.clip(j - i, -3, 3) + 3] += pairs[:, i, j]
    got = whole(*map(tensorflow.constant, (q, k, table)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-8)
    assert keras.backend.backend() == "tensorflow"
