"""Batches through tf.data: the same bytes in the same order, whatever the threads."""

import itertools
import pathlib

import prepared_directories
import pytest
from batch_arrays import arrays_of, assert_same
from interpreters import python

from keras_tupe.data import Masking, PreparedRows, Rows, tf_dataset

LENGTH = 16
TOKENS = prepared_directories.make_rows(210, LENGTH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "rows"
    return prepared_directories.write_directory(folder, {"train": TOKENS}, rows_per_shard=64)


@pytest.fixture(scope="module")
def rows(folder):
    source = PreparedRows(folder)
    return Rows(source, Masking.of(source.vocabulary), batch_size=8, seed=4)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_elements_are_the_batches_in_order(rows, threads):
    dataset = tf_dataset(rows, 1000, 40, num_parallel_calls=threads, prefetch=3)
    assert dataset.cardinality() == 40
    for element, batch in zip(dataset, itertools.islice(rows.batches(1000), 40), strict=True):
        assert_same(arrays_of(element), arrays_of(batch))


def test_without_a_number_of_steps_there_is_no_end(rows, tensorflow):
    dataset = tf_dataset(rows, start_step=10**12)
    assert dataset.cardinality() == tensorflow.data.INFINITE_CARDINALITY
    assert_same(arrays_of(next(iter(dataset))), arrays_of(rows.batch(10**12)))


def test_tensorflow_does_not_divide_the_work_among_processes(rows, tensorflow):
    policy = tf_dataset(rows).options().experimental_distribute.auto_shard_policy
    assert policy == tensorflow.data.experimental.AutoShardPolicy.OFF


@pytest.mark.parametrize("steps", [(-1, None), (0, -1)])
def test_steps_below_zero_are_refused(rows, steps):
    with pytest.raises(ValueError, match=rf"start_step={steps[0]}, num_steps={steps[1]}$"):
        tf_dataset(rows, *steps)


MIRRORED = """
import sys
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
import numpy as np
from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.data import Masking, PreparedRows, Rows, tf_dataset

source = PreparedRows(sys.argv[1])
rows = Rows(source, Masking.of(source.vocabulary), batch_size=8, seed=4)
strategy = tf.distribute.MirroredStrategy()
assert strategy.num_replicas_in_sync == 2

# each replica gets half of each batch, in order
distributed = strategy.experimental_distribute_dataset(tf_dataset(rows, 3, 5))
steps = 0
for step, (inputs, labels, weights) in enumerate(distributed, start=3):
    expected, expected_labels, _ = rows.batch(step)
    for name, tensor in inputs.items():
        halves = strategy.experimental_local_results(tensor)
        assert [len(half) for half in halves] == [4, 4]
        assert (np.concatenate(halves) == expected[name]).all(), name
    halves = strategy.experimental_local_results(labels)
    assert (np.concatenate(halves) == expected_labels).all()
    steps += 1
assert steps == 5

with strategy.scope():
    model = TupeMaskedLM(TupeBackbone(500, 1, 2, 16, 32, dropout=0.0, max_sequence_length=16))
    model.compile(keras.optimizers.AdamW(1e-2), jit_compile=False)
losses = model.fit(tf_dataset(rows), steps_per_epoch=5, epochs=4, verbose=0).history["loss"]
assert np.isfinite(losses).all(), losses
"""


@pytest.mark.slow
def test_a_strategy_gives_each_replica_its_half(folder):
    root = pathlib.Path(__file__).resolve().parents[3]
    devices = {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    python("-c", MIRRORED, folder, environment=devices, cwd=root)
