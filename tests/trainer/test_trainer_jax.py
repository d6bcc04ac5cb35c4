"""Two devices on JAX train to the weights of one."""

import pathlib

import keras
import numpy as np
import pytest
from exactness_case import CLIP_NORM
from interpreters import python

WORKER = pathlib.Path(__file__).parent / "jax_devices_worker.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What a process with two devices found."""
    if keras.backend.backend() != "jax":
        pytest.skip("tests JAX; run it with KERAS_BACKEND=jax")
    out = tmp_path_factory.mktemp("jax") / "found.npz"
    flags = "--xla_force_host_platform_device_count=2"
    python(WORKER, out, environment={"XLA_FLAGS": flags, "JAX_ENABLE_X64": "0"})
    with np.load(out) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("route", ["two", "two_micro4", "two_group5", "one_micro4"])
def test_every_route_gives_the_update_of_one_device(found, route, optimizer):
    assert found["num_devices"] == 2
    expected, update = found[f"one/{optimizer}"], found[f"{route}/{optimizer}"]
    assert np.linalg.norm(update - expected) <= 1e-4 * np.linalg.norm(expected)
    assert found[f"{route}/{optimizer}_norm"] > CLIP_NORM, "nothing is clipped"


def test_all_rows_of_two_devices_draw_different_masks(found):
    rows = found["masks"].reshape(-1, found["masks"].shape[-1])
    assert len(np.unique(rows, axis=0)) == len(rows)
