"""Contracts of the layers of replaced tokens; what they are for is tested with the model."""

import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import (
    DiscriminatorHead,
    DisentangledEmbedding,
    TokenEmbedding,
)

IDS = np.array([[1, 12, 0], [3, 3, 7]], "int32")


@pytest.mark.filterwarnings("ignore:Gradients do not exist for variables .'layer/token_embedding")
def test_layer_contract_of_the_disentangled_embedding(tmp_path):
    run_layer_contract(
        DisentangledEmbedding,
        lambda dtype: {"base": TokenEmbedding(13, 5, dtype=dtype)},
        {"inputs": IDS},
        output_shape=(2, 3, 5),
        num_weights=2,
        folder=tmp_path,
        dead_weights=("embeddings",),  # of the base: no gradient passes to it
    )


def test_a_disentangled_embedding_begins_as_its_base():
    base = TokenEmbedding(13, 5, dtype="float64")
    layer = DisentangledEmbedding(base, dtype="float64")
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(IDS)), ops.convert_to_numpy(base(IDS)))
    layer.difference.assign(np.full((13, 5), 0.25))
    expected = ops.convert_to_numpy(base(IDS)) + 0.25
    np.testing.assert_allclose(ops.convert_to_numpy(layer(IDS)), expected, atol=1e-15)


def test_layer_contract_of_the_discriminator_head(tmp_path):
    run_layer_contract(
        DiscriminatorHead,
        lambda dtype: {"hidden_dim": 6, "kernel_initializer": "random_normal"},
        {"hidden_states": np.random.normal(size=(2, 3, 6)).astype("float32")},
        output_shape=(2, 3),
        num_weights=4,
        folder=tmp_path,
        at_least_float32=True,
    )
