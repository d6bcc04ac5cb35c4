"""With `TWO_REPLICAS` in the environment, each test makes its trainers on two devices of the CPU.

`test_exactness.py` and `test_trainer_jax.py` run what one device promises a second time that way.
"""

import os

import pytest


@pytest.fixture(scope="session")
def num_replicas():
    return 2 if "TWO_REPLICAS" in os.environ else 1


@pytest.fixture(scope="session", autouse=True)
def scope(num_replicas):
    """Sets the scope that `trainer_cases` makes models and trainers in."""
    if num_replicas == 1:
        return
    import keras
    import trainer_cases

    if keras.backend.backend() == "jax":  # the environment says how many devices there are
        parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
        keras.distribution.set_distribution(parallel)
        return
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    trainer_cases.scope = tf.distribute.MirroredStrategy().scope
