"""The attention core: in blocks, in a loop and all at once, with the same results."""

import functools

import keras
import numpy as np
import pytest
from core_ways import assert_same, outputs_and_gradients
from keras import ops
from position_cases import CASES, Case, by_kind, encoder, inputs, random_ids

from keras_tupe.layers.attention import blocks, core, random_bits
from keras_tupe.layers.attention.row_block import RowBlock
from keras_tupe.layers.attention.weighted_values import ScoreDropout

ROWS = 3  # of a block
WAYS = {
    "whole": {"LONGEST_WHOLE": 10**9},
    "blocks": {"LONGEST_WHOLE": 0, "known": True},
    "loop": {"LONGEST_WHOLE": 0, "known": False},
}


def go(way, monkeypatch, rows=ROWS):
    """Makes the core take a way, whatever the length."""
    monkeypatch.setattr(core, "LONGEST_WHOLE", WAYS[way]["LONGEST_WHOLE"])
    if "known" in WAYS[way]:
        in_blocks = functools.partial(blocks.attend_in_blocks, rows=rows, known=WAYS[way]["known"])
        monkeypatch.setattr(core, "attend_in_blocks", in_blocks)


def rows_of(length):
    given = inputs(random_ids(3, length))
    given["padding_mask"] = np.array(given["padding_mask"])
    given["padding_mask"][0, (length + 1) // 2 :] = 0  # one row is short, one has nothing
    given["padding_mask"][2] = 0
    return given


# Of each mechanism as it is, and with all options at once.
NUM_OPTIONS = {
    case.name: max(len(other.options) for other in CASES if other.name == case.name)
    for case in CASES
}
EXTREMES = [case for case in CASES if len(case.options) in (0, NUM_OPTIONS[case.name])]
OTHERS = [
    pytest.param(case, id=str(case), marks=pytest.mark.slow)
    for case in CASES
    if case not in EXTREMES
]


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize(
    "length", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3, 4, 6))]
)
@pytest.mark.parametrize(
    "case", [*by_kind(EXTREMES, also=lambda case: len(case.options) > 0), *OTHERS]
)
def test_blocks_and_loops_equal_the_plain_equation(case, length, monkeypatch):
    model = encoder(case, num_layers=1)
    found = {}
    for way in WAYS:
        go(way, monkeypatch)
        found[way] = outputs_and_gradients(model, rows_of(length))
    assert_same(found["blocks"], found["whole"])
    assert_same(found["loop"], found["whole"])


@pytest.mark.usefixtures("floatx")
@pytest.mark.parametrize("name", ["tupe_r", "shaw"])
def test_dropout_draws_the_same_scores_whatever_the_block(name, monkeypatch):
    found = {}
    for way, rows in (("whole", 3), ("blocks", 3), ("blocks", 2), ("loop", 3)):
        model = encoder(Case(name), dropout=0.4, num_layers=1)
        for layer in model._flatten_layers():
            for generator in getattr(layer, "_seed_generators", ()):
                generator.state.assign([3, 0])
        go(way, monkeypatch, rows)
        found[way, rows] = outputs_and_gradients(model, rows_of(7), training=True)
    wanted = found.pop(("whole", 3))
    assert len(found) == 3
    for got in found.values():
        assert_same(got, wanted)
    go("whole", monkeypatch)
    without = ops.convert_to_numpy(encoder(Case(name))(rows_of(7))["sequence_output"])
    assert np.abs(without - ops.convert_to_numpy(wanted["sequence_output"])).max() > 1e-3


@pytest.mark.usefixtures("floatx")
def test_a_graph_serves_lengths_that_are_not_known_before(tensorflow, monkeypatch):
    model = encoder(Case("tupe_r"), num_layers=1)

    @tensorflow.function(reduce_retracing=True, autograph=False)
    def run(token_ids, padding_mask):
        given = {"token_ids": token_ids, "padding_mask": padding_mask}
        return outputs_and_gradients_of(given)

    def outputs_and_gradients_of(given):
        weights = [weight.value for weight in model.trainable_weights]
        with tensorflow.GradientTape() as tape:
            found = model(given)["sequence_output"]
            loss = ops.sum(found**2)
        return found, tape.gradient(loss, weights, unconnected_gradients="zero")

    go("loop", monkeypatch)
    spec = tensorflow.TensorSpec((None, None), "int32")
    graph = run.get_concrete_function(spec, spec)
    for length in (1, 3, 7, 8):
        given = rows_of(length)
        got = graph(
            *(tensorflow.constant(given[n], "int32") for n in ("token_ids", "padding_mask"))
        )
        go("whole", monkeypatch)
        wanted = outputs_and_gradients_of(given)
        for ours, theirs in zip(keras.tree.flatten(got), keras.tree.flatten(wanted), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11)


def shapes_of(graph):
    """Returns the shapes of all tensors of a graph and of what it calls."""
    graphs, seen, done = [graph], [], set()
    while graphs:
        graph = graphs.pop()
        for op in graph.get_operations():
            seen += [tuple(x.shape) for x in op.outputs if x.shape.rank is not None]
        for function in graph._functions.values():
            inner = getattr(function, "graph", None)
            if inner is not None and id(inner) not in done:
                done.add(id(inner))
                graphs.append(inner)
    return seen


# Each kind of term; that of the words is in all of them.
@pytest.mark.parametrize(
    "name", [pytest.param("absolute", marks=pytest.mark.slow), "tupe_r", "shaw", "deberta", "qkr_3"]
)
def test_no_tensor_has_all_pairs(name, tensorflow, monkeypatch):
    length = 79  # above the size of a tile
    model = encoder(
        Case(name), dtype="float32", num_layers=1, max_sequence_length=length, dropout=0.1
    )
    weights = [weight.value for weight in model.trainable_weights]

    def step(token_ids):
        with tensorflow.GradientTape() as tape:
            found = model({"token_ids": token_ids, "padding_mask": token_ids}, training=True)
            loss = ops.sum(found["sequence_output"])
        return tape.gradient(loss, weights)

    def all_pairs(way):
        go(way, monkeypatch, rows=45)
        function = tensorflow.function(step, autograph=False)
        graph = function.get_concrete_function(tensorflow.TensorSpec((2, length), "int32")).graph
        return [shape for shape in shapes_of(graph) if shape[-2:] == (length, length)]

    assert not all_pairs("blocks")
    assert not all_pairs("loop")
    if name == "tupe_r":
        assert all_pairs("whole"), "the search finds them"


def test_bits_depend_on_coordinates_alone():
    seed = ops.convert_to_tensor([5, 7], "int32")
    whole = ops.convert_to_numpy(random_bits.keep_mask((2, 3, 40, 50), 0.3, seed))
    part = ops.convert_to_numpy(random_bits.keep_mask((2, 3, 7, 50), 0.3, seed, 11))
    np.testing.assert_array_equal(part, whole[:, :, 11:18])
    other = random_bits.keep_mask((2, 3, 40, 50), 0.3, ops.convert_to_tensor([5, 8], "int32"))
    assert 0.5 < (ops.convert_to_numpy(other) == whole).mean() < 0.66


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0**-10])
def test_bits_are_kept_at_the_rate_and_look_independent(rate):
    seed = ops.convert_to_tensor([1, 2], "int32")
    keep = ops.convert_to_numpy(random_bits.keep_mask((8, 64, 2048), rate, seed)).astype("float64")
    deviation = np.sqrt(rate * (1 - rate) / keep.size)
    assert abs(keep.mean() - (1 - rate)) < 4 * deviation
    centered = (keep - (1 - rate)) / np.sqrt(rate * (1 - rate))
    for axis in range(3):  # neighbors along each axis, and far ones
        for step in (1, 2, 4):
            product = centered * np.roll(centered, step, axis)
            assert abs(product.mean()) < 4.5 / np.sqrt(keep.size)
    rows = centered.mean(axis=-1) * np.sqrt(keep.shape[-1])
    assert 0.8 < rows.var() < 1.2
    assert abs((rows**4).mean() - 3) < 1.5


def test_the_score_dropout_scales_what_is_kept():
    assert ScoreDropout(0.2, None).scale == 1.25
    assert RowBlock(3, 4, 9).end == 7
