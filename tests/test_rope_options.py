"""Options of RoPE and ALiBi: by layer, for longer texts, as before without them, and refused."""

import numpy as np
import pytest
from keras import ops
from position_cases import KEY_DIM, MAX_LENGTH, WIDTH, Case, MethodLayers
from tolerances import in_float64

from keras_tupe.models import TupeBackbone
from training.check.method import equation

PAIR = Case("rope", (("every", 3), ("local_theta", 20.0), ("theta", 500.0)))
YARN = Case("rope", (("factor", 2.5), ("original_length", 40), ("scaling", "yarn")))


def test_each_third_layer_has_theta_and_the_others_local_theta():
    tokens = np.random.default_rng(0).normal(size=(2, MAX_LENGTH, WIDTH))
    found = []
    for layer in range(4):
        layers = MethodLayers(PAIR, "float64", layer=layer)
        logits, wanted = layers.logits(tokens), layers.oracle(tokens)
        np.testing.assert_allclose(logits, wanted, rtol=0, atol=in_float64(1e-12))
        found.append(logits)
    np.testing.assert_array_equal(found[0], found[3])
    np.testing.assert_array_equal(found[1], found[2])
    assert np.abs(found[0] - found[1]).max() > 0.1


def test_yarn_multiplies_what_rotates_where_nothing_is_turned():
    tokens = np.random.default_rng(0).normal(size=(1, 1, WIDTH))
    layers = MethodLayers(YARN, "float64")
    query, key = (
        ops.convert_to_numpy(dense(tokens))[0, 0]
        for dense in (layers.attention.query_dense, layers.attention.key_dense)
    )
    channels = query * key  # the last one of an odd head does not rotate
    wanted = (0.1 * np.log(2.5) + 1) ** 2 * channels[:, :-1].sum(-1) + channels[:, -1]
    got = layers.logits(tokens)[0, :, 0, 0]
    np.testing.assert_allclose(got, wanted / KEY_DIM**0.5, rtol=0, atol=in_float64(1e-12))


def test_causal_layers_have_no_weights_for_what_they_never_see():
    def weights(position, **options):
        model = TupeBackbone(
            9, 1, 2, 4, 8, position=position, position_options=options, attention_pattern="causal"
        )
        return {weight.path: tuple(weight.shape) for weight in model.weights}

    assert weights("alibi", learned=True, sides=2)["position_bias/linear/log_slopes"] == (1, 2)
    gates = weights("data_dependent_alibi")["block_0/attention/key/gate_kernel"]
    assert gates == (4, 2, 1)


@pytest.mark.parametrize("name", ["fire", "data_dependent_alibi", "pope"])
def test_four_times_the_length_is_still_the_equation(name):
    equation.check_parity(Case(name), lengths=(4 * MAX_LENGTH,))
