"""What every test gets: one seed, a strict session, and Keras on TensorFlow unless told otherwise.

`KERAS_BACKEND=jax pytest tests/layers tests/models tests/test_positions.py` works without
TensorFlow; what needs TensorFlow asks for it with the fixture `tensorflow`.
"""

import os
import pathlib
import shutil

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_ENABLE_X64", "1")  # else JAX turns float64 into float32

import hypothesis
import pytest

# Warnings are errors. These come from inside Keras, whatever we do.
WARNINGS_OF_KERAS = (
    # saving a variable with NumPy 2
    "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning",
    # `fit` and `predict` of a KerasHub task given arrays
    "ignore:`shuffle=True` was passed, but will be ignored:UserWarning",
)


def pytest_configure(config):
    for line in WARNINGS_OF_KERAS:
        config.addinivalue_line("filterwarnings", line)


# Not a single test is random from run to run.
hypothesis.settings.register_profile(
    "deterministic", derandomize=True, deadline=None, max_examples=10, database=None
)
hypothesis.settings.load_profile("deterministic")


@pytest.fixture(autouse=True)
def seed():
    """Fixes all random numbers of Python, NumPy and Keras."""
    import keras  # here and below, since the process that hands out the tests runs none

    keras.utils.set_random_seed(7)


@pytest.fixture(autouse=True)
def global_state_is_left_alone():
    """Fails a test that leaves another precision policy or another registry behind."""
    import keras

    from keras_tupe import positions

    policy, methods = keras.config.dtype_policy(), dict(positions.METHODS)
    default = keras.config.floatx()
    yield
    assert keras.config.dtype_policy() == policy
    assert keras.config.floatx() == default
    assert methods == positions.METHODS


@pytest.fixture
def loaded_files():
    """Lets a test load records from files; they are forgotten afterwards."""
    from keras_tupe import attention_patterns, objectives, positions

    registries = [room.REGISTRY for room in (positions, attention_patterns, objectives)]
    before = [set(registry.loaded()) for registry in registries]
    yield
    for registry, names in zip(registries, before, strict=True):
        for name in set(registry.loaded()) - names:
            registry.forget(name)


@pytest.fixture
def floatx(request):
    """Sets Keras's `floatx` and default precision policy to the test's parameter, or float64."""
    import keras

    value = getattr(request, "param", "float64")
    default, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(value)
    keras.config.set_dtype_policy(value)
    yield value
    keras.config.set_floatx(default)
    keras.config.set_dtype_policy(policy)


@pytest.fixture
def linear_slope(loaded_files, tmp_path):
    """The name of a method loaded from a file far from the package."""
    from keras_tupe import positions

    file = pathlib.Path(__file__).parents[1] / "examples" / "linear_slope.py"
    return positions.load_file(shutil.copy(file, tmp_path))


@pytest.fixture
def tensorflow():
    """TensorFlow, for tests of what only that backend does."""
    import keras

    if keras.backend.backend() != "tensorflow":
        pytest.skip("tests what happens inside a TensorFlow graph; the backend is another one")
    return pytest.importorskip("tensorflow")
