"""Attention layers with a table of distances, and the table."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.layers import (
    PlainSelfAttention,
    QKRMultiplicativeAttention,
    QKRPairwiseAttention,
    RelativePositionTable,
)
from keras_tupe.positions.diet_rel import DistanceBiasAttention
from keras_tupe.positions.shaw import ShawAttention

HIDDEN = {"hidden_states": np.random.default_rng(0).normal(size=(3, 7, 11)).astype("float32")}


def settings(width, **kwargs):
    """Returns the constructor's arguments of an attention layer with a table."""
    return lambda dtype: {
        "num_heads": 2,
        "key_dim": 5,
        "dropout": 0.1,
        "position_table": RelativePositionTable(
            3, num_heads=2, width=width, untie_cls=True, dtype=dtype, name="table", **kwargs
        ),
    }


@pytest.mark.parametrize(
    ("width", "signed"), [pytest.param(1, False, marks=pytest.mark.slow), (1, True), (5, True)]
)
def test_layer_contract_of_the_multiplicative_methods(width, signed, tmp_path):
    run_layer_contract(
        QKRMultiplicativeAttention,
        settings(width, signed=signed),
        HIDDEN,
        output_shape=(3, 7, 11),
        num_weights=10,
        num_states=1,
        folder=tmp_path,
    )


def test_layer_contract_of_the_pairwise_method(tmp_path):
    run_layer_contract(
        QKRPairwiseAttention,
        settings(5),
        HIDDEN,
        output_shape=(3, 7, 11),
        num_weights=10,
        num_states=1,
        folder=tmp_path,
    )


def test_layer_contract_of_shaws_method(tmp_path):
    run_layer_contract(
        ShawAttention,
        settings(5),
        HIDDEN,
        output_shape=(3, 7, 11),
        num_weights=10,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def test_layer_contract_of_a_bias_per_layer(tmp_path):
    run_layer_contract(
        DistanceBiasAttention,
        settings(1),
        HIDDEN,
        output_shape=(3, 7, 11),
        num_weights=10,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def test_layer_contract_of_the_table(tmp_path):
    run_layer_contract(
        RelativePositionTable,
        lambda dtype: {
            "max_distance": 8,
            "num_heads": 2,
            "width": 5,
            "signed": False,
            "clip": False,
            "untie_cls": True,
            "initializer": "ones",
        },
        HIDDEN,
        output_shape=[(2, 2, 5), (17, 2, 5)],
        num_weights=2,
        folder=tmp_path,
        is_position_term=True,
    )


def random_layer(layer_class, width, **table):
    made = RelativePositionTable(3, width=width, dtype="float64", **table)
    layer = layer_class(2, 5, position_table=made, dtype="float64")
    layer.build((None, None, 10))
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


def random_pair():
    rng = np.random.default_rng(2)
    return [ops.convert_to_tensor(rng.normal(size=(3, 7, 2, 5)), "float64") for _ in range(2)]


def logits_of(layer, *arguments):
    return ops.convert_to_numpy(layer.all_logits(*arguments))


def test_an_unsigned_table_is_its_own_mirror_image():
    table = RelativePositionTable(3, signed=False, width=2, dtype="float64")
    rows = ops.convert_to_numpy(table(np.zeros((1, 4, 3)))["distances"])
    assert rows.shape == (7, 1, 2)
    np.testing.assert_array_equal(rows, rows[::-1])
    np.testing.assert_array_equal(rows[3:], ops.convert_to_numpy(table.distance_embeddings))


@pytest.mark.parametrize("name", ["cls", "no_cls"])
def test_method_4_is_the_completed_product_of_equation_17(name):
    layer = random_layer(QKRPairwiseAttention, 5, untie_cls=name == "cls")
    query, key = random_pair()
    table = layer.position_table(query)
    a = ops.convert_to_numpy(table["distances"])
    distance = np.clip(np.arange(7) - np.arange(7)[:, None], -3, 3)
    vectors = a[distance + 3, 0]  # (n, n, d)
    if "cls" in table:
        row, column = ops.convert_to_numpy(table["cls"])[:, 0]
        vectors[:, 0], vectors[0] = column, row
    q, k = (np.transpose(ops.convert_to_numpy(x), (0, 2, 1, 3)) for x in (query, key))
    product = (q[:, :, :, None] + vectors) * (k[:, :, None] + vectors)
    expected = (product.sum(-1) - (vectors**2).sum(-1)) / np.sqrt(5)
    np.testing.assert_allclose(
        logits_of(layer, query, key, None, None), expected, atol=in_float64(1e-12)
    )


def test_absolute_positions_are_method_4_with_vectors_of_places_but_for_their_own_product():
    rng = np.random.default_rng(3)
    x, p = rng.normal(size=(2, 7, 10))
    kernels = rng.normal(size=(2, 10, 5))
    q, k = x @ kernels[0], x @ kernels[1]
    place_query, place_key = p @ kernels[0], p @ kernels[1]
    absolute = (x + p) @ kernels[0] @ ((x + p) @ kernels[1]).T / np.sqrt(5)
    # Method 4's logit where q_i meets the vector of place j and k_j that of place i.
    pairwise = (q @ k.T + q @ place_key.T + place_query @ k.T) / np.sqrt(5)
    np.testing.assert_allclose(absolute, pairwise + place_query @ place_key.T / np.sqrt(5))
    # One token wide, a table of our layer has the vector of that place: the terms agree.
    layer = random_layer(QKRPairwiseAttention, 5)
    table = np.zeros((7, 1, 5))
    table[3] = place_key[0]  # distance 0
    layer.position_table.distance_embeddings.assign(table)
    one = [ops.convert_to_tensor(np.tile(v[:1], (2, 1))[None, None]) for v in (q, k)]
    got = logits_of(layer, *one, None, None)[0, 0, 0, 0]
    expected = (q[0] @ k[0] + q[0] @ place_key[0] + k[0] @ place_key[0]) / np.sqrt(5)
    np.testing.assert_allclose(got, expected, atol=in_float64(1e-12))


@pytest.mark.parametrize("width", [1, 5])
def test_a_table_of_ones_gives_exactly_attention_without_positions(width):
    table = RelativePositionTable(3, 2, width, untie_cls=True, initializer="ones", dtype="float64")
    layer = QKRMultiplicativeAttention(2, 5, position_table=table, dtype="float64")
    plain = PlainSelfAttention(2, 5, dtype="float64")
    for made in (layer, plain):
        made.build((None, None, 10))
    query, key = random_pair()
    expected = logits_of(plain, query, key, None, None)
    np.testing.assert_allclose(
        logits_of(layer, query, key, None, None), expected, atol=in_float64(1e-13)
    )


@pytest.mark.parametrize(
    ("layer_class", "width"), [(QKRMultiplicativeAttention, 1), (QKRMultiplicativeAttention, 5),
    (QKRPairwiseAttention, 5), (ShawAttention, 5), (DistanceBiasAttention, 1)],
)  # fmt: skip
def test_a_position_bias_is_added_and_a_shared_table_does_what_an_own_one_does(layer_class, width):
    own = random_layer(layer_class, width, untie_cls=True)
    query, key = random_pair()
    plain = logits_of(own, query, key, None, None)
    bias = np.random.default_rng(4).normal(size=(1, 2, 7, 7))
    biased = logits_of(own, query, key, ops.convert_to_tensor(bias), None)
    np.testing.assert_allclose(biased, plain + bias, atol=in_float64(1e-12))
    sharing = layer_class(2, 5, dtype="float64")
    sharing.build((None, None, 10))
    shared = logits_of(sharing, query, key, None, own.position_table(query))
    np.testing.assert_array_equal(shared, plain)


def test_no_table_and_two_tables_are_refused():
    hidden_states = ops.zeros((1, 4, 10))
    with pytest.raises(ValueError, match="one table of distances(.|\n)*Received: neither"):
        ShawAttention(2, 5)(hidden_states)
    layer = ShawAttention(2, 5, position_table=RelativePositionTable(3, width=5))
    shared = RelativePositionTable(3, width=5)(hidden_states)
    with pytest.raises(ValueError, match="one table of distances(.|\n)*Received: both"):
        layer(hidden_states, shared_positions=shared)


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="must be a `keras_tupe.layers.RelativePositionTable`"):
        QKRPairwiseAttention(2, 5, position_table=keras.layers.Dense(3))
    for table in ({"width": 4}, {"width": 5, "num_heads": 3}, {"width": 1}):
        with pytest.raises(ValueError, match=r"num_heads=1 or 2, and a width of 5\. Received:"):
            QKRPairwiseAttention(2, 5, position_table=RelativePositionTable(3, **table))
    with pytest.raises(ValueError, match="a width of 1 or 5"):
        QKRMultiplicativeAttention(2, 5, position_table=RelativePositionTable(3, width=4))
    for bad in (0, -1, 2.5, None):
        with pytest.raises(ValueError, match="`max_distance` must be a positive integer"):
            RelativePositionTable(bad)


def test_a_table_without_clipping_refuses_longer_sequences():
    table = RelativePositionTable(3, clip=False)
    assert table(np.zeros((1, 4, 2)))["distances"].shape == (7, 1, 1)
    with pytest.raises(ValueError, match=r"at most max_sequence_length=4 tokens(.|\n)*length=5"):
        table(np.zeros((1, 5, 2)))
