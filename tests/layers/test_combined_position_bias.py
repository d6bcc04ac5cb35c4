import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import CombinedPositionBias, RelativeBucketBias, UntiedPositionBias

X = np.zeros((3, 7, 10), "float32")


def parts(dtype, cls_theta=True):
    untied = UntiedPositionBias(2, 5, 11, cls_theta=cls_theta, dtype=dtype, name="untied")
    # initial values of 1 would hide the order of sum and reset
    relative = RelativeBucketBias(2, initializer="random_normal", dtype=dtype, name="relative")
    return [untied, relative]


def scrambled(layer):
    layer.build(X.shape)
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer


def values(tensor):
    return ops.convert_to_numpy(tensor)


@pytest.mark.parametrize("untie_cls", [True, False])
def test_layer_contract(untie_cls, tmp_path):
    run_layer_contract(
        CombinedPositionBias,
        lambda dtype: {"parts": parts(dtype, cls_theta=untie_cls), "untie_cls": untie_cls},
        {"hidden_states": X},
        output_shape=(1, 2, 7, 7),
        num_weights=7 if untie_cls else 6,
        folder=tmp_path,
        is_position_term=True,
    )


def test_tied_it_is_the_sum_of_its_parts():
    layer = scrambled(CombinedPositionBias(parts("float64", cls_theta=False), dtype="float64"))
    expected = sum(values(part(X)) for part in layer.parts)
    np.testing.assert_allclose(values(layer(X)), expected, atol=1e-12)


def test_untied_the_reset_comes_after_the_sum_with_the_theta_of_the_first_part():
    layer = scrambled(CombinedPositionBias(parts("float64"), untie_cls=True, dtype="float64"))
    expected = sum(values(part(X)) for part in layer.parts)
    theta = values(layer.parts[0].theta())
    expected[:, :, :, 0] = theta[1][:, None]
    expected[:, :, 0, :] = theta[0][:, None]
    np.testing.assert_allclose(values(layer(X)), expected, atol=1e-12)


def test_a_part_without_theta_gets_free_scalars():
    relative = RelativeBucketBias(2, dtype="float64", name="relative")
    layer = scrambled(CombinedPositionBias([relative], untie_cls=True, dtype="float64"))
    assert [w.path.split("/", 1)[1] for w in layer.weights] == [
        "relative/embeddings",
        "cls_reset/theta",
    ]
    free = values(layer.cls_reset.theta)
    out = values(layer(X))[0]
    for h in range(2):
        np.testing.assert_array_equal(out[h, 0], free[0, h])
        np.testing.assert_array_equal(out[h, 1:, 0], free[1, h])
    inner = values(relative(X))[0]
    np.testing.assert_array_equal(out[:, 1:, 1:], inner[:, 1:, 1:])


def test_no_parts_are_refused():
    with pytest.raises(ValueError, match="at least one position bias layer"):
        CombinedPositionBias([])
