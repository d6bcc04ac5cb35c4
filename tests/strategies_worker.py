"""Trains a small TUPE-R under MirroredStrategy with XLA, and once more on one device.

A process of its own, because logical devices must be made before TensorFlow starts. Writes both
runs to an `.npz` file that `test_strategies.py` judges:

    python tests/strategies_worker.py {cpu,gpu} OUT.npz
"""

import sys

import keras
import numpy as np
import tensorflow as tf

from keras_tupe.models import TupeBackbone, TupeMaskedLM

NUM_STEPS = 6
ROWS_PER_REPLICA = 6
LENGTH, PREDICTIONS, VOCABULARY_SIZE = 11, 5, 41


def devices_of(kind):
    """Returns the names of two logical CPUs, or of every GPU."""
    if kind == "gpu":
        # TensorFloat-32 rounds products to 10 bits, more than the runs may differ.
        tf.config.experimental.enable_tensor_float_32_execution(False)
        return [f"GPU:{index}" for index in range(len(tf.config.list_physical_devices("GPU")))]
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return ["CPU:0", "CPU:1"]


def new_model():
    keras.utils.set_random_seed(3)
    # Segments, because their table is not tied to the head: a sparse gradient would stay one.
    sizes = {"max_sequence_length": LENGTH, "num_segments": 2}
    return TupeMaskedLM(TupeBackbone(VOCABULARY_SIZE, 2, 2, 10, 22, dropout=0.0, **sizes))


def batches(num_rows):
    """Yields global batches; the first half of the rows has far fewer masked tokens."""
    random = np.random.default_rng(5)
    token_ids = random.integers(0, VOCABULARY_SIZE, (num_rows, LENGTH), "int32")
    lengths = random.integers(PREDICTIONS, LENGTH + 1, (num_rows, 1))
    inputs = {
        "token_ids": token_ids,
        "padding_mask": (np.arange(LENGTH) < lengths).astype("int32"),
        "segment_ids": random.integers(0, 2, (num_rows, LENGTH), "int32"),
        "mask_positions": np.tile(np.arange(PREDICTIONS, dtype="int32"), (num_rows, 1)),
    }
    labels = random.integers(0, VOCABULARY_SIZE, (num_rows, PREDICTIONS), "int32")
    slots = np.where(np.arange(num_rows)[:, None] < num_rows // 2, 1, PREDICTIONS)
    weights = (np.arange(PREDICTIONS) < slots).astype("float32")
    for _ in range(NUM_STEPS):
        yield inputs, labels, weights


def train(strategy, num_rows):
    """Returns losses, initial and last weights per replica, and the kinds of gradients seen."""
    with strategy.scope():
        model = new_model()
        # The pooler is no part of masked language modeling and has no gradient.
        variables = [v for v in model.trainable_variables if "pooled_dense" not in v.path]
        optimizer = keras.optimizers.SGD(0.5)
        optimizer.build(variables)
    gradient_types = set()

    # Keras compiles the whole strategy.run, which fails with more than one replica: XLA may not
    # hold the collectives. So it gets the forward and backward pass of one replica alone.
    @tf.function(jit_compile=True)
    def loss_and_gradients(inputs, labels, weights, num_masked):
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(losses * weights) / num_masked
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        gradient_types.update(type(gradient).__name__ for gradient in gradients)
        return loss, gradients

    def replica_step(inputs, labels, weights):
        context = tf.distribute.get_replica_context()
        num_masked = context.all_reduce("SUM", tf.reduce_sum(weights))
        loss, gradients = loss_and_gradients(inputs, labels, weights, num_masked)
        optimizer.apply(gradients, variables)  # sums over the replicas first
        return context.all_reduce("SUM", loss)

    @tf.function
    def step(batch):
        return strategy.run(replica_step, args=batch)

    def per_replica(variable):
        return [value.numpy() for value in strategy.experimental_local_results(variable.value)]

    initial = [per_replica(variable) for variable in variables]
    share = num_rows // strategy.num_replicas_in_sync
    losses = []
    for batch in batches(num_rows):

        def rows_of(context, batch=batch):
            first = context.replica_id_in_sync_group * share
            return tf.nest.map_structure(lambda x: tf.constant(x[first : first + share]), batch)

        local = strategy.experimental_distribute_values_from_function(rows_of)
        losses.append(strategy.experimental_local_results(step(local))[0].numpy())
    last = [per_replica(variable) for variable in variables]
    return losses, initial, last, gradient_types


def flat(weights):
    """Returns all weights of every replica as rows `(replicas, number of weights)`."""
    return np.stack(
        [np.concatenate([w.ravel() for w in row]) for row in zip(*weights, strict=True)]
    )


def main(kind, out):
    devices = devices_of(kind)
    num_rows = ROWS_PER_REPLICA * len(devices)
    strategies = {
        "mirrored": tf.distribute.MirroredStrategy(devices),
        "single": tf.distribute.OneDeviceStrategy(devices[0]),
    }
    arrays = {}
    for name, strategy in strategies.items():
        losses, initial, last, gradient_types = train(strategy, num_rows)
        arrays[f"{name}_losses"] = np.array(losses)
        arrays[f"{name}_initial"] = flat(initial)
        arrays[f"{name}_last"] = flat(last)
        arrays[f"{name}_gradient_types"] = np.array(sorted(gradient_types))
    np.savez(out, num_devices=len(devices), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
