import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import AbsolutePositionEmbedding


def test_layer_contract(tmp_path):
    run_layer_contract(
        AbsolutePositionEmbedding,
        lambda dtype: {"max_sequence_length": 11, "initializer": "ones"},
        {"hidden_states": np.random.normal(size=(3, 7, 10)).astype("float32")},
        output_shape=(3, 7, 10),
        num_weights=1,
        folder=tmp_path,
    )


@pytest.mark.parametrize("length", [1, 2, 7, 11])
def test_position_i_gets_row_i(length):
    layer = AbsolutePositionEmbedding(11, dtype="float64")
    x = np.random.normal(size=(3, length, 5))
    out = ops.convert_to_numpy(layer(x))
    table = ops.convert_to_numpy(layer.embeddings)
    assert table.shape == (11, 5)
    np.testing.assert_array_equal(out, x + table[:length])


def test_new_tables_have_deviation_0_02():
    layer = AbsolutePositionEmbedding(100)
    layer.build((None, None, 100))
    assert np.std(ops.convert_to_numpy(layer.embeddings)) == pytest.approx(0.02, rel=0.05)


def test_longer_than_the_table_is_refused_by_a_sentence():
    layer = AbsolutePositionEmbedding(5, name="positions")
    message = r"max_sequence_length=5 tokens(.|\n)*Truncate(.|\n)*Received: sequence length=6"
    with pytest.raises(ValueError, match=message):
        layer(np.zeros((1, 6, 4)))
    with pytest.raises(ValueError, match=message):
        layer(keras.Input((6, 4)))


@pytest.mark.parametrize("value", [0, -1, 1.5, "5", True, None])
def test_impossible_lengths_are_refused(value):
    with pytest.raises(ValueError, match="`max_sequence_length` must be a positive integer"):
        AbsolutePositionEmbedding(value)
