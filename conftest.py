"""Names that the examples in docstrings use without an import."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_ENABLE_X64", "1")  # else JAX turns float64 into float32
# XLA's own passes as ever, but machine code as it comes: tests compile much and compute little
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import keras
import numpy as np
import pytest

import keras_tupe


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    """Gives `keras`, `keras_tupe` and `np` to every example."""
    keras.utils.set_random_seed(7)
    doctest_namespace.update(keras=keras, keras_tupe=keras_tupe, np=np)
