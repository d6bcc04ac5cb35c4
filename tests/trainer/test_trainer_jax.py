"""Two devices on JAX train to the weights of one."""

import itertools
import pathlib

import keras
import numpy as np
import pytest
from exactness_case import CLIP_NORM
from interpreters import python
from made_once import made_once

WORKER = pathlib.Path(__file__).parent / "jax_devices_worker.py"


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """What a process with two devices found."""
    if keras.backend.backend() != "jax":
        pytest.skip("tests JAX; run it with KERAS_BACKEND=jax")

    def make(folder):
        folder.mkdir()
        flags = "--xla_force_host_platform_device_count=2"
        environment = {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "0"}
        python(WORKER, folder / "found.npz", environment=environment)

    folder = made_once(tmp_path_factory, "jax_devices", make)
    with np.load(folder / "found.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize(
    ("route", "optimizer"),
    [
        *itertools.product(["two", "two_micro4", "one_micro4"], ["sgd", "adamw"]),
        ("two_micro4", "adamw_several"),
        ("two_micro4", "adamw_replaced"),
    ],
)
def test_every_route_gives_the_update_of_one_device(found, route, optimizer):
    assert found["num_devices"] == 2
    expected, update = found[f"one/{optimizer}"], found[f"{route}/{optimizer}"]
    assert np.linalg.norm(update - expected) <= 1e-5 * np.linalg.norm(expected)
    assert found[f"{route}/{optimizer}_norm"] > CLIP_NORM, "nothing is clipped"


def test_all_rows_of_two_devices_draw_different_masks(found):
    rows = found["masks"].reshape(-1, found["masks"].shape[-1])
    assert len(np.unique(rows, axis=0)) == len(rows)
