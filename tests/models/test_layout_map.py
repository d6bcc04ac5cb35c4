"""Weights divided among devices: which, and that nothing changes by it."""

import os
import sys

import keras
import numpy as np
import pytest
from interpreters import python
from position_cases import CASES, encoder

from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.trainer import Trainer

METHODS = ("bert_r", "t5_low_rank", "shaw")  # together they have tables of each kind
FLAGS = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"


def mesh(*names, shape=(2, 2)):
    devices = [f"cpu:{number}" for number in range(4)]
    return keras.distribution.DeviceMesh(shape, names or ("batch", "model"), devices)


def test_all_that_is_large_is_divided_whatever_the_method():
    layout_map, used = TupeBackbone.get_layout_map(mesh()), set()
    for case in CASES:
        with keras.StatelessScope(initialize_variables=False):
            model = encoder(case, scale=None, num_layers=1, embedding_dim=6)
        keras.utils.clear_session(free_memory=False)
        for weight in model.weights:
            layout = layout_map[weight.path]
            used.add(layout)
            assert layout is None or len(layout.axes) == len(weight.shape), weight.path
            small = ("bias", "gamma", "beta", "cls_embeddings", "segment_embedding/embeddings")
            is_small = weight.path.endswith(small) or weight.path.startswith("position_bias")
            assert layout or is_small or weight.path.endswith("phase"), weight.path
    assert used == {*layout_map.values(), None}


def test_errors_say_which_mesh_is_needed():
    with pytest.raises(ValueError, match=r"must be a `keras.*DeviceMesh`(.|\n)*device_mesh=None"):
        TupeBackbone.get_layout_map(None)
    with pytest.raises(ValueError, match="axis 'model'(.|\n)*Received: axis_names=.*'rows'"):
        TupeBackbone.get_layout_map(mesh("batch", "rows"))


def test_four_devices_give_the_losses_and_gradients_of_one():
    if keras.backend.backend() != "jax":
        pytest.skip("tests JAX; run it with KERAS_BACKEND=jax")
    settings = {"XLA_FLAGS": FLAGS, "JAX_ENABLE_X64": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    python(__file__, environment=settings)


def step(name, distribution):
    """Returns loss and gradients of a batch, and the share of the weights that a device has."""
    keras.distribution.set_distribution(distribution)
    random = np.random.default_rng(0)
    model = TupeMaskedLM(TupeBackbone(24, 1, 2, 8, 12, name, max_sequence_length=6, dropout=0))
    weights = model.trainable_variables
    before = [random.normal(0, 0.3, weight.shape).astype("float32") for weight in weights]
    model.set_weights(before)
    trainer = Trainer(model)
    trainer.compile(keras.optimizers.SGD(1.0))
    ids = random.integers(4, 24, (8, 6), "int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids), "mask_positions": ids % 6}
    loss = trainer.train_on_batch(inputs, ids)
    gradients = [x - np.asarray(weight) for x, weight in zip(before, weights, strict=True)]
    mine = sum(w.value.addressable_shards[0].data.size for w in model.backbone.weights)
    return [loss, *gradients], mine / model.backbone.count_params()


if __name__ == "__main__":
    for method in METHODS:
        layout_map = TupeBackbone.get_layout_map(mesh())
        parallel = keras.distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch")
        one, whole = step(method, None)
        four, share = step(method, parallel)
        assert whole == 1
        assert share < 0.5, f"{method}: a device has {share:.0%} of the weights"
        for alone, together in zip(one, four, strict=True):
            np.testing.assert_allclose(together, alone, rtol=0, atol=2e-6)
