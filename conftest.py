"""Names that the examples in docstrings use without an import."""

import gc
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_ENABLE_X64", "1")  # else JAX turns float64 into float32
# XLA's own passes as ever, but machine code as it comes: tests compile much and compute little
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import pytest


def pytest_collection_finish(session):
    """What is imported by now stays: looking for garbage in it takes half a second each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    """Gives `keras`, `keras_tupe` and `np` to every example."""
    import keras  # here, since the process that hands out the tests runs none
    import numpy as np

    import keras_tupe

    keras.utils.set_random_seed(7)
    doctest_namespace.update(keras=keras, keras_tupe=keras_tupe, np=np)
