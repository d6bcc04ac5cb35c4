"""Weights at zero, and training that keeps them there."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe import TupeBackbone, TupeTextClassifier
from keras_tupe.models import keep_zeros, prune_weights, share_of_zeros
from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw
from keras_tupe.trunk.changes import kernels


def classifier():
    backbone = TupeBackbone(23, 2, 2, 8, 12, dropout=0.0, max_sequence_length=9)
    return TupeTextClassifier(backbone, 2)


def test_the_smallest_of_each_kernel_are_zero_and_all_else_stays():
    model = classifier()
    pruned = prune_weights(model, 0.3)
    are_kernels = {kernel.path for kernel in kernels(model)}
    assert "block_1/attention/query/kernel" in are_kernels
    assert "position_bias/untied/projection/key/kernel" in are_kernels
    assert not any("logits" in path or "embeddings" in path for path in are_kernels)
    for old, new in zip(model.weights, pruned.weights, strict=True):
        old, path, new = (*(ops.convert_to_numpy(x) for x in (old,)), new.path, new)
        new = ops.convert_to_numpy(new)
        expected = old.copy()
        if path in are_kernels:
            limit = sorted(abs(old.ravel()))[round(0.3 * old.size)]
            expected[abs(old) < limit] = 0
        np.testing.assert_array_equal(new, expected)
    assert abs(share_of_zeros(pruned) - 0.3) < 0.01
    assert share_of_zeros(model) == 0
    assert share_of_zeros(prune_weights(model, 0)) == 0


def test_random_weights_are_others_and_as_many():
    model = classifier()
    found = [prune_weights(model, 0.3, seed=seed) for seed in (0, 0, 1)]
    assert len({share_of_zeros(pruned) for pruned in found}) == 1
    first, again, other = (ops.convert_to_numpy(kernels(pruned)[0]) for pruned in found)
    np.testing.assert_array_equal(first, again)
    assert np.any((first == 0) != (other == 0))


def _train(model, steps):
    optimizer = adamw(LinearWarmupDecay(0.01, 10, 0), weight_decay=0.1)
    trainer = Trainer(model, train_metrics=False)
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    trainer.compile(optimizer, loss=loss)
    ids = np.random.default_rng(0).integers(0, 23, (4, 7)).astype("int32")
    batch = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    labels, weights = np.array([0, 1, 1, 0]), np.ones(4, "float32")
    trainer.fit(((batch, labels, weights) for _ in range(steps)), steps_per_epoch=steps, verbose=0)


def test_training_keeps_zeros_and_moves_the_rest():
    model = keep_zeros(prune_weights(classifier(), 0.4))
    before = [ops.convert_to_numpy(kernel) for kernel in kernels(model)]
    _train(model, 3)
    for kernel, old in zip(kernels(model), before, strict=True):
        new = ops.convert_to_numpy(kernel)
        np.testing.assert_array_equal(new[old == 0], 0)
        assert np.all(new[old != 0] != old[old != 0])
    free = prune_weights(classifier(), 0.4)
    _train(free, 1)
    assert share_of_zeros(free) < 0.01  # without masks they are gone after a step


@pytest.mark.parametrize("share", [1, 2.0, -0.5, None])
def test_a_share_outside_of_its_range_is_refused(share):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        prune_weights(TupeBackbone(9, 1, 1, 2, 2), share)
