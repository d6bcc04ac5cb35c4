import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.layers import UntiedPositionBias


def test_layer_contract(tmp_path):
    run_layer_contract(
        UntiedPositionBias,
        lambda dtype: {
            "num_heads": 2,
            "key_dim": 5,
            "max_sequence_length": 11,
            "cls_theta": False,
            "use_bias": True,
            "epsilon": 1e-3,
            "initializer": "random_normal",
        },
        {"hidden_states": np.random.normal(size=(3, 7, 10)).astype("float32")},
        output_shape=(1, 2, 7, 7),
        num_weights=7,
        folder=tmp_path,
        is_position_term=True,
    )


def scrambled(**kwargs):
    layer = UntiedPositionBias(2, 5, 11, dtype="float64", name="u", **kwargs)
    layer.build((None, None, 10))
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    weights = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in layer.weights}
    return layer, weights


def correlation(query_rows, key_rows, w, h):
    """(LN(p_i) U^Q) . (LN(p_j) U^K) / sqrt(2d) of head h, from the slices of all of U."""

    def project(rows, side):
        rows = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
        rows = rows * w["projection/layer_norm/gamma"] + w["projection/layer_norm/beta"]
        out = rows @ w[f"projection/{side}/kernel"][:, h]
        return out + (w[f"projection/{side}/bias"][h] if f"projection/{side}/bias" in w else 0)

    return project(query_rows, "query") @ project(key_rows, "key").T / np.sqrt(2 * 5)


@pytest.mark.parametrize("length", [1, 2, 7, 11])
@pytest.mark.parametrize("use_bias", [False, True])
def test_bias_and_theta_equal_the_equations(length, use_bias):
    layer, w = scrambled(use_bias=use_bias)
    bias = ops.convert_to_numpy(layer(np.random.normal(size=(3, length, 10))))
    theta = ops.convert_to_numpy(layer.theta())
    assert bias.shape == (1, 2, length, length)
    assert theta.shape == (2, 2)
    p, p_theta = w["projection/embeddings"][:length], w["cls_embeddings"]
    for h in range(2):
        np.testing.assert_allclose(bias[0, h], correlation(p, p, w, h), atol=in_float64(1e-11))
        both = correlation(p_theta, p_theta, w, h)
        np.testing.assert_allclose(theta[:, h], np.diag(both), atol=in_float64(1e-11))


def test_the_bias_does_not_depend_on_the_hidden_states():
    layer, _ = scrambled()
    one, other = (layer(np.random.normal(size=(b, 7, 10))) for b in (1, 3))
    np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_theta_without_its_vectors_is_refused():
    layer = UntiedPositionBias(2, 5, 11, cls_theta=False)
    layer.build((None, None, 10))
    with pytest.raises(ValueError, match=r"`cls_theta=True`\. Received: cls_theta=False"):
        layer.theta()


def test_the_vectors_and_kernels_are_drawn_apart():
    layer = UntiedPositionBias(1, 5, 5, initializer="random_normal")
    layer.build((None, None, 5))
    drawn = [w for w in layer.weights if not w.path.endswith(("gamma", "beta"))]
    assert len(drawn) == 4
    first_rows = [ops.convert_to_numpy(w).reshape(-1)[:5] for w in drawn]
    for i, one in enumerate(first_rows):
        for other in first_rows[:i]:
            assert np.abs(one - other).max() > 1e-4
