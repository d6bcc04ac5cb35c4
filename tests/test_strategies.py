"""TUPE trains under MirroredStrategy with XLA, and to the same weights as on one device."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

WORKER = pathlib.Path(__file__).parent / "strategies_worker.py"


def run_worker(kind, folder):
    """Returns the arrays that the worker writes."""
    out = folder / "runs.npz"
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}
    if kind == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    finished = subprocess.run(
        [sys.executable, str(WORKER), kind, str(out)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    with np.load(out) as arrays:
        return dict(arrays)


def assert_trained_alike(runs):
    assert set(runs["mirrored_gradient_types"]) == {"SymbolicTensor"}, "dense, none missing"
    assert runs["mirrored_losses"][-1] < 0.9 * runs["mirrored_losses"][0]
    np.testing.assert_allclose(runs["mirrored_losses"], runs["single_losses"], rtol=1e-5)
    replicas = runs["mirrored_last"]
    assert len(replicas) == runs["num_devices"]
    assert (replicas == replicas[0]).all(), "the replicas' variables went apart"
    np.testing.assert_array_equal(runs["mirrored_initial"][0], runs["single_initial"][0])
    expected = runs["single_last"][0] - runs["single_initial"][0]
    update = replicas[0] - runs["mirrored_initial"][0]
    assert np.linalg.norm(update - expected) <= 1e-4 * np.linalg.norm(expected)


def test_two_replicas_with_xla_train_to_the_weights_of_one(tmp_path):
    runs = run_worker("cpu", tmp_path)
    assert runs["num_devices"] == 2
    assert_trained_alike(runs)


@pytest.mark.gpu
def test_every_gpu_with_xla_trains_to_the_weights_of_one(tmp_path):
    if not tf.config.list_physical_devices("GPU"):
        pytest.skip(
            "TensorFlow sees no GPU. On a machine with NVIDIA GPUs run: "
            "pip install -e '.[test,gpu]' && pytest -m gpu"
        )
    assert_trained_alike(run_worker("gpu", tmp_path))


STOCK_FIT = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras, keras_tupe, numpy as np
strategy = tf.distribute.MirroredStrategy()
assert strategy.num_replicas_in_sync == 2
with strategy.scope():
    model = keras_tupe.TupeMaskedLM(keras_tupe.TupeBackbone(50, 1, 2, 16, 32, dropout=0.0))
    model.compile(keras.optimizers.AdamW(1e-2), jit_compile=False)
ids = np.random.default_rng(1).integers(5, 50, (32, 8)).astype("int32")
places = np.tile(np.array([[1, 3]], "int32"), (32, 1))
inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids), "mask_positions": places}
data = (inputs, np.take_along_axis(ids, places, axis=1), np.ones((32, 2), "float32"))
losses = model.fit(tf.data.Dataset.from_tensor_slices(data).batch(8), epochs=6, verbose=0)
first, *_, last = losses.history["loss"]
assert last < 0.8 * first, losses.history
"""


def test_plain_fit_trains_on_two_replicas():
    command = [sys.executable, "-W", "ignore", "-c", STOCK_FIT]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
