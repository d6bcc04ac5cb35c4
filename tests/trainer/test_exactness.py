"""However a batch is spread, training gives the same weights; in processes of their own."""

import concurrent.futures
import itertools
import json
import os
import pathlib
import socket

import numpy as np
import pytest
from exactness_case import CLIP_NORM, LOSS_WEIGHTS, NUM_STEPS, kind_of
from interpreters import python
from made_once import made_once

WORKER = pathlib.Path(__file__).parent / "exactness_worker.py"
# all at once but XLA, which the odd sizes below have, and micro-batches, which the masks have; the
# grid has each alone, and more of it
ROUTE = "mirrored-adamw-noxla-several"
WORKER_ROUTES = [
    "workers-adamw-micro4",
    "workers-adamw-micro2-several",
    "workers-adamw-micro4-replaced",
]
SEQ2SEQ = [
    "plain-adamw-seq2seq",
    "plain-adamw-micro4-xla-seq2seq",
    "mirrored-adamw-noxla-seq2seq",
    "mirrored-adamw-micro4-xla-seq2seq",
    "mirrored-adamw-micro2-remat-seq2seq",
]
OPTIMIZERS = ("sgd", "momentum", "adamw")


def run_worker(out, *words, **environment):
    """Returns the arrays that one process writes."""
    known = {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    python(WORKER, out, *words, environment={**known, **environment})
    with np.load(out) as arrays:
        return dict(arrays)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run_two_workers(folder, *routes):
    """Returns what each of two workers found."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}

    def run(index):
        task = {"type": "worker", "index": index}
        configuration = json.dumps({"cluster": cluster, "task": task})
        return run_worker(folder / f"worker{index}.npz", *routes, TF_CONFIG=configuration)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(2)))


@pytest.fixture(scope="session")
def replicas(tmp_path_factory):
    """What a process with two logical CPUs found."""

    def make(folder):
        folder.mkdir()
        run_worker(folder / "found.npz", "plain-adamw-several", ROUTE, "behaviour")

    with np.load(made_once(tmp_path_factory, "replicas", make) / "found.npz") as arrays:
        found = dict(arrays)
    behaviour = {
        name.split("/")[1]: value for name, value in found.items() if name.startswith("behaviour/")
    }
    return found, behaviour


def reference_of(route):
    """Returns the route of one replica that trains on the same."""
    words = route.split("-")
    return "-".join(["plain", words[1], *filter(None, [kind_of(words)])])


def scores_of(found, route):
    return dict(zip(found[f"{route}/names"], found[f"{route}/scores"], strict=True))


def difference(found, route, references):
    """Norm of the difference to the update of one replica, as a share of that update's."""
    expected = references[f"{reference_of(route)}/update"]
    return np.linalg.norm(found[f"{route}/update"] - expected) / np.linalg.norm(expected)


def assert_exact(found, route, references):
    got = difference(found, route, references)
    assert got <= 1e-5, f"relative difference of the update, {route}"
    norms = found[f"{route}/norms"]
    assert len(norms) == NUM_STEPS
    assert (norms > CLIP_NORM).all(), "nothing is clipped"
    single, several = scores_of(references, reference_of(route)), scores_of(found, route)
    assert len(single) == (5 if kind_of(route.split("-")) in LOSS_WEIGHTS else 2)
    assert single.keys() == several.keys()
    for name, value in single.items():
        np.testing.assert_allclose(several[name], value, rtol=1e-4)


# === Exactness ===


def test_two_replicas_give_the_update_of_one(replicas):
    found, _ = replicas
    assert_exact(found, ROUTE, found)


@pytest.mark.slow
def test_two_workers_give_the_update_of_one_replica(replicas, tmp_path):
    references, _ = replicas
    references |= run_worker(tmp_path / "plain.npz", "plain-adamw", "plain-adamw-replaced")
    workers = run_two_workers(tmp_path, *WORKER_ROUTES)
    for found in workers:
        for route in WORKER_ROUTES:
            assert_exact(found, route, references)
    for route in WORKER_ROUTES:
        first, second = (found[f"{route}/update"] for found in workers)
        np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_keras_own_fit_is_far_from_the_update_of_one_replica(tmp_path):
    found = run_worker(tmp_path / "found.npz", "plain-sgd", "mirrored-sgd-stock")
    got = difference(found, "mirrored-sgd-stock", found)
    assert got > 0.1, "Keras is exact now: is the trainer still needed?"


@pytest.mark.slow
def test_encoder_and_decoder_have_the_update_of_one_replica(tmp_path):
    found = run_worker(tmp_path / "found.npz", *SEQ2SEQ)
    for route in SEQ2SEQ:
        assert_exact(found, route, found)
        assert difference(found, route, found) <= 1e-5


@pytest.mark.slow
def test_the_whole_grid_gives_the_update_of_one_replica(tmp_path):
    kinds = [("", "-micro4"), ("", "-xla", "-noxla")]
    grid = [
        f"{place}-{optimizer}{''.join(words)}"
        for place in ("plain", "onedevice", "mirrored")
        for optimizer in OPTIMIZERS
        for words in itertools.product(*kinds)
    ]
    several = ("", "-micro4", "-xla", "-micro2-xla", "-noxla")
    grid += [
        f"{place}-adamw{x}-{kind}"
        for place in ("plain", "mirrored")
        for x in several
        for kind in ("several", "replaced")
    ]
    grid += ["plain-sgd-remat", "mirrored-adamw-remat", "mirrored-sgd-micro4-xla-remat"]
    grid.append("mirrored-adamw-micro2-noxla-several")  # without XLA, in a loop of parts
    found = run_worker(tmp_path / "grid.npz", *grid)
    for route in grid:
        assert_exact(found, route, found)
    routes = [
        f"workers-{optimizer}{words}"
        for optimizer in OPTIMIZERS
        for words in ("", "-micro4-xla", "-noxla")
    ]
    for worker in run_two_workers(tmp_path, *routes):
        for route in routes:
            assert_exact(worker, route, found)


@pytest.mark.gpu
def test_every_gpu_gives_the_update_of_one(tmp_path):
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        pytest.skip(
            "TensorFlow sees no GPU. On a machine with NVIDIA GPUs run: "
            "pip install -e '.[test,gpu]' && pytest -m gpu"
        )
    routes = ["gpus-sgd", "gpus-adamw-micro4"]  # XLA, which is the default there
    visible = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")}
    found = run_worker(tmp_path / "gpus.npz", "plain-sgd", "plain-adamw", *routes, **visible)
    for route in routes:
        assert_exact(found, route, found)


# === Dropout ===


def test_two_replicas_draw_different_masks(replicas):
    _, behaviour = replicas
    for name in ("masks", "masks_of_four_parts"):
        masks = behaviour[name]
        rows = masks.reshape(-1, masks.shape[-1])
        assert len(np.unique(rows, axis=0)) == len(rows), f"{name}: some rows share a mask"
        assert 0.4 < masks.mean() < 0.6


def test_replicas_draw_what_micro_batches_would(replicas):
    _, behaviour = replicas
    np.testing.assert_array_equal(behaviour["masks"], behaviour["masks_of_micro_batches"])


def test_resumed_replicas_draw_what_the_unkilled_would(replicas):
    _, behaviour = replicas
    np.testing.assert_array_equal(behaviour["resumed_masks"], behaviour["masks"])


# === Faults ===


def test_a_bad_row_on_one_replica_stops_both_before_the_update(replicas):
    _, behaviour = replicas
    assert behaviour["bad_step"] == 2
    for name in ("stopped", "tolerant", "before", "clean"):
        first, second = behaviour[name]
        np.testing.assert_array_equal(first, second, err_msg=f"the replicas differ: {name}")
    np.testing.assert_array_equal(behaviour["stopped"], behaviour["before"])


def test_a_tolerated_bad_row_leaves_no_trace(replicas):
    _, behaviour = replicas
    assert behaviour["steps"].tolist() == [5, 1]
    np.testing.assert_array_equal(behaviour["tolerant"], behaviour["clean"])
    assert np.isfinite(behaviour["loss"])


def test_float16_overflows_lower_the_loss_scale_and_training_goes_on(replicas):
    _, behaviour = replicas
    steps, skipped = behaviour["half_steps"]
    assert (steps, skipped) == (80, 0)
    overflows = steps - behaviour["half_iterations"]
    assert overflows >= 1
    assert behaviour["half_scale"] == 2.0 ** (20 - overflows)
    assert behaviour["half_losses"][-1] < 0.1 * behaviour["half_losses"][0]


# === Odd sizes and scopes ===


def test_a_short_last_batch_counts_as_on_one_replica(replicas):
    _, behaviour = replicas
    for name in ("weights", "evaluated"):
        np.testing.assert_allclose(
            behaviour[f"two_{name}"], behaviour[f"one_{name}"], rtol=1e-5, atol=1e-6
        )
    errors = (behaviour["predicted"] - behaviour["targets"])[:, 0]
    weights = behaviour["row_weights"]
    expected = [(weights * x).sum() / weights.sum() for x in (errors**2, np.abs(errors))]
    np.testing.assert_allclose(behaviour["two_evaluated"], expected, rtol=1e-5)


def test_model_trainer_and_compile_must_share_a_scope(replicas):
    _, behaviour = replicas
    for message in behaviour["messages"]:
        assert message.startswith("Model, trainer and `compile` belong in the scope of one")
