"""TF_CONFIG as users write it, strategies by name, and workers that wait for each other."""

import json
import socket
import threading
import time

import pytest
from interpreters import free_addresses

from keras_tupe.trainer import cluster, make_strategy
from keras_tupe.trainer._meeting import meet

WORKERS = ["host1:2222", "10.0.0.2:23456", "[::1]:2222"]


def config(workers=WORKERS, index=0, kind="worker", **more):
    return json.dumps(
        {"cluster": {"worker": workers, **more}, "task": {"type": kind, "index": index}}
    )


def test_a_cluster_is_its_workers_and_this_one():
    assert [cluster(config(index=n)) for n in range(3)] == [(WORKERS, n) for n in range(3)]
    assert cluster(config(WORKERS[:1])) == (WORKERS[:1], 0)


BAD = {
    "no JSON": "{'cluster': 1}",
    "half of it": config()[:-5],
    "a list": "[1]",
    "no task": config().partition(', "task"')[0] + "}",
    "no workers": config().replace('"worker": [', '"workers": ['),
    "a task without index": config().replace(', "index": 0', ""),
    "a chief": config(chief=["host0:1"]),
    "this one is a chief": config(kind="chief"),
    "workers that are no list": config("host1:2222"),
    "an empty list": config([]),
    "a port apart": config([["host1", 2222], "host2:2222"]),
    "no port": config(["host1", "host2:2222"]),
    "no host": config([":2222", "host2:2222"]),
    "a port that is none": config(["host1:0", "host2:65536"]),
    "a port in other digits": config(["host1:\u00b2", "host2:2222"]),
    "a worker twice": config([*WORKERS, WORKERS[0]]),
    "an index too high": config(index=3),
    "an index below 0": config(index=-1),
    "an index as text": config(index="0"),
    "an index that is true": config(index=True),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_wrong_tf_config_is_told(text):
    with pytest.raises(ValueError, match=r"^TF_CONFIG must be JSON of the form") as error:
        cluster(text)
    assert str(error.value).endswith(f"Received: TF_CONFIG={text!r}")


def test_strategies_by_name(tensorflow, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    default = tensorflow.distribute.get_strategy()
    assert make_strategy("one") is default
    mirrored = make_strategy("mirrored")
    assert type(mirrored) is tensorflow.distribute.MirroredStrategy
    gpus = tensorflow.config.list_physical_devices("GPU")
    assert mirrored.num_replicas_in_sync == max(1, len(gpus))
    assert (make_strategy("auto") is default) == (len(gpus) < 2)
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv("TF_CONFIG", value)
        with pytest.raises(ValueError, match="needs the environment variable TF_CONFIG"):
            make_strategy("multiworker")
    monkeypatch.setenv("TF_CONFIG", config())
    assert make_strategy("one") is default


# === Workers that wait for each other ===


def all_meet(workers, indices, seconds, pause=0.0):
    """What each of some workers is told, each in a thread; the first starts last."""
    found = {}

    def go(index):
        found[index] = meet(workers, index, seconds)

    threads = [threading.Thread(target=go, args=(index,)) for index in indices]
    for thread in reversed(threads):
        thread.start()
        time.sleep(pause)
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("number", [1, 2, 5])
def test_workers_meet_whoever_comes_first(number):
    workers = free_addresses(number)
    for pause in (0.0, 0.05):  # twice at the same address
        assert all_meet(workers, range(number), 20, pause) == {n: [] for n in range(number)}


def test_no_worker_goes_on_while_one_is_missing():
    start = time.monotonic()
    assert all_meet(free_addresses(4), [0, 1, 3], 1.0) == {0: [2], 1: [0], 3: [0]}
    assert all_meet(free_addresses(2), [1], 0.5) == {1: [0]}
    assert all_meet(free_addresses(3), [0], 0.5) == {0: [1, 2]}
    assert time.monotonic() - start < 10


def test_strangers_and_workers_that_start_again_do_not_disturb():
    workers = free_addresses(3)
    address = ("127.0.0.1", int(workers[0].rpartition(":")[2]))
    found = {}
    first = threading.Thread(target=lambda: found.update(all_meet(workers, [0, 1], 20)))
    first.start()
    for greeting in (b"", b"GET / HTTP/1.1\r\n\r\n", b"7\n", b"0\n", b"2\n"):
        while True:  # until the first worker is there
            try:
                with socket.create_connection(address, 5) as stranger:
                    stranger.sendall(greeting)
                break
            except OSError:
                time.sleep(0.01)
    time.sleep(0.1)
    assert meet(workers, 2, 20) == []
    first.join()
    assert found == {0: [], 1: []}
