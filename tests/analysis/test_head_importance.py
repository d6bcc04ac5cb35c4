"""Gradients of gates, beside differences."""

import numpy as np
import pytest
from keras import ops
from position_cases import Case, encoder, inputs, random_ids
from tolerances import in_float64

from keras_tupe.analysis import head_importance
from keras_tupe.models import prune_heads
from training.check.method.numpy_encoder import encode

CASE = Case("tupe_r")
GIVEN = inputs(random_ids(3, 6), lengths=[6, 4, 5])
# A loss without cancellation: each output has a factor of its own.
FACTORS = np.random.default_rng(1).normal(size=(10,))


def _losses(model):
    def losses(batch):
        x = model(batch, training=False)["pooled_output"]
        return ops.sum(x * ops.convert_to_tensor(FACTORS), axis=-1)

    return losses


def _rows(*rows):
    return {name: values[list(rows)] for name, values in GIVEN.items()}


def test_importance_is_the_mean_size_of_the_slope_of_each_examples_loss():
    model = encoder(CASE)
    found = head_importance(model, _losses(model), [_rows(0, 1), _rows(2)])
    step, slopes = 1e-4, np.empty((2, 2, 3))
    for layer, block in enumerate(model.blocks):
        kernel = block.attention.output_dense.kernel
        value = ops.convert_to_numpy(kernel)
        for head in range(2):
            losses = []
            for gate in (1 + step, 1 - step):
                changed = value.copy()
                changed[head] *= gate
                kernel.assign(changed)
                losses.append(encode(model, GIVEN)[1] @ FACTORS)  # in NumPy
            kernel.assign(value)
            slopes[layer, head] = (losses[0] - losses[1]) / (2 * step)
    np.testing.assert_allclose(found, np.abs(slopes).mean(axis=-1), rtol=1e-6)
    assert np.ptp(np.sign(slopes), axis=-1).max() == 2  # the mean of slopes would be another
    normalized = head_importance(model, _losses(model), [GIVEN], normalize=True)
    wanted = found / np.sqrt((found**2).sum(axis=1))[:, None]
    np.testing.assert_allclose(normalized, wanted, atol=in_float64(1e-12))


def test_removed_heads_have_no_importance_and_shared_blocks_one_row():
    model = prune_heads(encoder(CASE), {1: [0]})
    found = head_importance(model, _losses(model), [GIVEN])
    assert np.isnan(found).tolist() == [[False, False], [True, False]]
    shared = encoder(CASE, num_groups=1)
    found = head_importance(shared, _losses(shared), [_rows(0)])
    np.testing.assert_array_equal(found[0], found[1])


def test_losses_that_are_none_are_refused():
    model = encoder(CASE)
    with pytest.raises(ValueError, match="a number for each example"):
        head_importance(model, lambda batch: ops.mean(_losses(model)(batch)), [GIVEN])
    with pytest.raises(ValueError, match="at least one example"):
        head_importance(model, _losses(model), [])
