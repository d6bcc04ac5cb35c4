import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.layers import PositionProjection


@pytest.mark.parametrize(("use_bias", "num_weights"), [(False, 5), (True, 7)])
def test_layer_contract(tmp_path, use_bias, num_weights):
    run_layer_contract(
        PositionProjection,
        lambda dtype: {
            "num_heads": 2,
            "key_dim": 5,
            "max_sequence_length": 11,
            "use_bias": use_bias,
            "epsilon": 1e-3,
            "initializer": "random_normal",
        },
        {"hidden_states": np.random.normal(size=(3, 7, 10)).astype("float32")},
        output_shape=[(7, 2, 5), (7, 2, 5)],
        num_weights=num_weights,
        folder=tmp_path,
        is_position_term=True,
    )


@pytest.mark.parametrize("length", [1, 2, 7, 11])
@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
def test_queries_and_keys_equal_the_equation(length, use_bias, epsilon):
    layer = PositionProjection(
        2, 5, 11, use_bias=use_bias, epsilon=epsilon, dtype="float64", name="p"
    )
    layer.build((None, None, 10))
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    w = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in layer.weights}
    p = w["embeddings"][:length]
    p = (p - p.mean(1, keepdims=True)) / np.sqrt(p.var(1, keepdims=True) + epsilon)
    p = p * w["layer_norm/gamma"] + w["layer_norm/beta"]
    for side, out in zip(("query", "key"), layer(np.zeros((3, length, 10))), strict=True):
        expected = np.einsum("im,mhd->ihd", p, w[f"{side}/kernel"])
        expected = expected + (w[f"{side}/bias"] if use_bias else 0)
        np.testing.assert_allclose(ops.convert_to_numpy(out), expected, atol=in_float64(1e-11))


def test_longer_than_the_table_and_impossible_sizes_are_refused_by_a_sentence():
    message = r"max_sequence_length=11 tokens(.|\n)*Truncate(.|\n)*Received: sequence length=12"
    for given in (np.zeros((1, 12, 10)), keras.Input((12, 10))):
        with pytest.raises(ValueError, match=message):
            PositionProjection(2, 5, 11)(given)
    for name in ("num_heads", "key_dim", "max_sequence_length"):
        sizes = {"num_heads": 2, "key_dim": 5, "max_sequence_length": 11, name: 0}
        with pytest.raises(ValueError, match=f"`{name}` must be a positive integer"):
            PositionProjection(**sizes)
