"""The walk over rectangles of logits: parts of the whole, blocks, windows, loops, random bits."""

import keras
import numpy as np
import pytest
from core_ways import assert_same, go, outputs_and_gradients
from keras import ops
from position_cases import Case, encoder, inputs, random_ids
from tolerances import in_float64

from keras_tupe import positions
from keras_tupe.layers import Block
from keras_tupe.layers.attention import core, random_bits

CLIPPED = (("k", 3),)
MECHANISMS = [
    Case("tupe_r"),
    Case("shaw", CLIPPED),
    Case("qkr_2"),
    Case("qkr_3", (*CLIPPED, ("cls", "untied"))),
    Case("qkr_4", (*CLIPPED, ("cls", "untied"), ("share_heads", True))),
    Case("xlnet", (("cls", "untied"),)),
    Case("data_dependent_alibi", (("cls", "untied"),)),
    Case("rope", (("cls", "untied"),)),
    Case("fire"),
]
# first query and number, first key and number
RECTANGLES = [
    (0, 3, 0, 11),
    (4, 5, 0, 11),
    (10, 1, 0, 11),
    (2, 4, 1, 8),
    (0, 11, 0, 2),
    (5, 2, 8, 3),
]
LONG_ONES = [(0, 211, 0, 211), (130, 71, 0, 211), (0, 70, 30, 99), (0, 211, 100, 40)]


def rectangle(layer, parts, at):
    """Returns the logits of a rectangle, cut out of the parts of all."""
    start, rows, offset, keys = at
    cut = core.Parts(core.cut(parts.rows, start, rows), core.cut(parts.keys, offset, keys))
    return layer._logits(cut._replace(whole=parts.whole), Block(start, rows, offset, keys))


def parts_of(case, length, **sizes):
    """Returns the attention of an encoder, its parts and its logits for some words."""
    model = encoder(case, num_layers=1, **sizes)
    layer, x = model.blocks[0].attention, np.random.default_rng(1).normal(size=(3, length, 10))
    x = ops.convert_to_tensor(x, model.compute_dtype)
    made = {one.name: one for one in model.layers}
    bias = made["position_bias"](x, as_parts=True) if "position_bias" in made else None
    shared = made["shared_positions"](x) if "shared_positions" in made else None
    block = Block(0, length, 0, length)
    terms = (bias, layer.of_layer(shared), block)
    parts, _ = layer._parts_and_values(x, layer._denses, *terms)
    return layer, parts, ops.convert_to_numpy(layer._logits(parts, block))


def check_rectangles(layer, parts, whole, rectangles):
    for at in rectangles:
        start, rows, offset, keys = at
        wanted = whole[:, :, start : start + rows, offset : offset + keys]
        step = (ops.convert_to_tensor(start, "int32"), rows, ops.cast(offset, "int32"), keys)
        for given in (at, step):  # known to the graph, and in a loop
            got = ops.convert_to_numpy(rectangle(layer, parts, given))
            np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12), err_msg=at)


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize("case", [*map(Case, positions.METHODS), *MECHANISMS[1:-1]], ids=str)
def test_every_rectangle_is_part_of_the_whole(case, monkeypatch):
    go("loop", monkeypatch)  # biases by their parts
    check_rectangles(*parts_of(case, 11), RECTANGLES)


@pytest.mark.usefixtures("floatx")
@pytest.mark.parametrize("case", MECHANISMS[1:5], ids=str)
def test_long_rectangles_are_made_in_tiles(case):
    check_rectangles(*parts_of(case, 211, max_sequence_length=300), LONG_ONES)


def rows_of(length):
    """Returns inputs whose first row is short, and whose last has nothing."""
    given = inputs(random_ids(3, length))
    given["padding_mask"] = np.array(given["padding_mask"])
    given["padding_mask"][0, max(length - 1, 1) :] = 0
    given["padding_mask"][2] = 0
    return given


WINDOWS = [
    None,
    {"window": 2},
    {"window": 2, "num_global": 2},
    {"window": 1, "num_global": 1, "separate_global": True},
    {"window": 3, "causal": True},
]


@pytest.mark.usefixtures("floatx")
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("case", [MECHANISMS[0], MECHANISMS[4], MECHANISMS[6]], ids=str)
def test_blocks_loops_and_windows_are_the_whole(case, window, monkeypatch):
    pattern = {"attention_pattern": "sliding_window", "pattern_options": window} if window else {}
    model = encoder(case, num_layers=1, dropout=0 if window else 0.4, **pattern)
    state = [v for v in model.non_trainable_variables if "seed" in v.path]
    found = {}
    for way in ("whole", "blocks", "loop"):
        go(way, monkeypatch)
        for seed in state:
            seed.assign([3, 0])
        found[way] = outputs_and_gradients(model, rows_of(7), training=True)
    assert_same(found["blocks"], found["whole"])
    assert_same(found["loop"], found["whole"])
    if not window:
        go("whole", monkeypatch)
        still = ops.convert_to_numpy(model(rows_of(7))["sequence_output"])
        assert np.abs(still - found["whole"]["sequence_output"]).max() > 1e-3  # dropout was there


@pytest.mark.usefixtures("floatx")
@pytest.mark.parametrize("case", [MECHANISMS[0], MECHANISMS[4]], ids=str)
def test_a_graph_serves_lengths_that_are_not_known_before(case, tensorflow, monkeypatch):
    model = encoder(case, num_layers=1)
    weights = [weight.value for weight in model.trainable_weights]

    def run(token_ids, padding_mask):
        with tensorflow.GradientTape() as tape:
            given = {"token_ids": token_ids, "padding_mask": padding_mask}
            found = model(given)["sequence_output"]
            loss = ops.sum(found**2)
        return found, tape.gradient(loss, weights, unconnected_gradients="zero")

    go("loop", monkeypatch)
    spec = tensorflow.TensorSpec((None, None), "int32")
    graph = tensorflow.function(run, autograph=False).get_concrete_function(spec, spec)
    go("whole", monkeypatch)
    for length in (1, 3, 8):
        given = [ops.cast(rows_of(length)[x], "int32") for x in ("token_ids", "padding_mask")]
        both = (keras.tree.flatten(way(*given)) for way in (graph, run))
        for ours, theirs in zip(*both, strict=True):
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


@pytest.mark.parametrize("name", ["tupe_r", "qkr_4"])
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

    assert not all_pairs("loop")
    if name == "tupe_r":
        assert all_pairs("whole"), "the search finds them"


def test_bits_depend_on_coordinates_alone():
    seed = ops.convert_to_tensor([5, 7], "int32")
    whole = ops.convert_to_numpy(random_bits.keep_mask((2, 3, 40, 50), 0.3, seed))
    part = ops.convert_to_numpy(random_bits.keep_mask((2, 3, 7, 50), 0.3, seed, 11))
    np.testing.assert_array_equal(part, whole[:, :, 11:18])
    ones = ops.ones((2, 3, 7, 50), "float64")  # scores that are kept are scaled up
    scaled = ops.convert_to_numpy(core.dropped(ones, core.Dropout(0.3, seed), 11))
    np.testing.assert_allclose(scaled, part / 0.7, rtol=1e-7)
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
