"""Exports behind a real server, MLServer in an environment of its own: `pytest -m serving`.

The first run makes that environment, which needs the network. What needs no server is in
`test_serving_parts.py`.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  for the ops of the tokenizer

from benchmarks.harness.environments import MLSERVER, SERVER
from benchmarks.harness.process import ROOT
from benchmarks.serving import __main__ as serving
from benchmarks.serving.answers import TOLERANCE
from benchmarks.serving.models import export
from benchmarks.serving.server import answers, take_ports

pytestmark = pytest.mark.serving
LENGTH = 32
# of /proc/net: a state, and 127.0.0.1 in IPv4, the same in IPv6, and ::1
LISTENING = "0A"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
PAGE = (ROOT / "docs" / "pages" / "guides" / "serving.md").read_text("utf-8")
CLIENTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
V2 = [code for code in CLIENTS if "127.0.0.1:8080" in code or "127.0.0.1:8081" in code]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """The folders of a text model and of an id model."""
    return export(tmp_path_factory.mktemp("exports"), "tiny", LENGTH)


@pytest.fixture(scope="module")
def folder(exports, tmp_path_factory):
    """What a run writes that asks for all outputs."""
    folder = tmp_path_factory.mktemp("benchmark") / "results"
    names = ",".join(map(str, exports))
    serving.main(["--export", names, "--outputs", "all", "--out", str(folder)])
    return folder


@pytest.fixture(scope="module")
def record(folder):
    return json.loads((folder / "serving.json").read_text("utf-8"))


@contextlib.contextmanager
def _started(*arguments):
    """Runs the benchmark as a process, in a session of its own, as a terminal would."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serving", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def held(exports):
    """Ports, by name, of a server that waits for Ctrl-C."""
    ports = take_ports({"http": None, "grpc": None})
    options = ("--http-port", ports["http"], "--grpc-port", ports["grpc"])
    with _started("--export", ",".join(map(str, exports)), "--hold", *options) as process:
        assert f"127.0.0.1:{ports['http']}" in process.stdout.readline(), process.stderr.read()
        yield ports


def _post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    return response.status, content


def _output_of_client(code, ports, folder):
    """Runs a client in the server's environment, with the ports that the server has."""
    for usual, name in (("8080", "http"), ("8081", "grpc")):
        code = code.replace(f"127.0.0.1:{usual}", f"127.0.0.1:{ports[name]}")
    (folder / "client.py").write_text(code)
    python = SERVER.default_folder() / "bin" / "python"
    variables = {**os.environ, "no_proxy": "127.0.0.1"}
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, folder / "client.py"], check=True, capture_output=True, text=True, env=variables
    )
    return done.stdout


def _ids(length=LENGTH, token=7):
    names = ("input_word_ids", "input_mask", "input_type_ids")
    rows = ([token] * length, [1] * length, [0] * length)
    inputs = [
        {"name": name, "shape": [1, length], "datatype": "INT32", "data": row}
        for name, row in zip(names, rows, strict=True)
    ]
    return {"inputs": inputs, "outputs": [{"name": "pooled_output"}]}


def test_a_thousand_concurrent_requests_of_mixed_lengths_are_answered_right(record):
    rows = [row for row in record["rows"] if row["how"] != "in process"]
    asked = {(row["model"], row["how"], row["clients"]) for row in rows}
    assert asked == {(m, how, 16) for m in ("text", "ids") for how in ("REST", "gRPC")}
    for row in rows:
        assert row["compared"] == 1000 + 64
        assert (row["wrong"], row["failed"]) == (0, 0)
        assert 0 <= row["largest_error"] <= TOLERANCE
        assert row["mean_batch"] > 2, "the server joined no requests, so this shows nothing"
    for difference in record["apart"].values():
        assert difference > 1e3 * TOLERANCE, "a mix-up would not be seen"


def test_the_record_has_its_command_and_tells_nothing_of_the_machine(folder, record):
    assert {entry.name for entry in folder.iterdir()} == {"serving.json", "serving.md"}
    assert record["command"].startswith("python -m benchmarks.serving --export text,ids ")
    assert record["versions"]["mlserver"] == MLSERVER
    assert record["command"] in (folder / "serving.md").read_text("utf-8")
    for file in folder.iterdir():
        for private in (str(pathlib.Path.home()), str(folder.parent), socket.gethostname()):
            assert private not in file.read_text("utf-8")


@pytest.mark.parametrize("code", V2)
def test_the_clients_of_the_readme_get_what_a_direct_call_gives(code, held, exports, tmp_path):
    shown = "import json\nprint(json.dumps([[float(x) for x in row] for row in pooled]))\n"
    answer = json.loads(_output_of_client(f"{code}\n{shown}", held, tmp_path))
    model = tf.saved_model.load(str(exports[0]))
    direct = model.signatures["serving_default"](text=tf.constant(["The cat sat.", "How are you?"]))
    np.testing.assert_allclose(answer, direct["pooled_output"], atol=1e-5)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_ids(LENGTH - 1), "must be INT32 of shape [-1, 32]"),
        (_ids(token=10**6), "The model refused the input"),
        (_ids(token="x"), "it must be integers"),
        ({"inputs": _ids()["inputs"][:2]}, "The inputs must be"),
        ({**_ids(), "outputs": [{"name": "vectors"}]}, "The outputs are"),
    ],
)
def test_a_wrong_request_fails_alone_and_says_why(change, expected, held):
    path = "/v2/models/ids/infer"
    bodies = [change if index % 4 == 1 else _ids() for index in range(16)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: _post(held["http"], path, body), bodies))
    alone = _post(held["http"], path, _ids())[1]["outputs"][0]["data"]
    for body, (status, content) in zip(bodies, answers, strict=True):
        if body is change:
            assert status == 400
            assert expected in content["error"]
        else:
            assert status == 200
            np.testing.assert_allclose(content["outputs"][0]["data"], alone, atol=1e-5)


def test_the_server_listens_on_this_machine_alone(held):
    found = {}
    for file in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", file).read_text().splitlines()[1:]:
            (host, port), state = line.split()[1].split(":"), line.split()[3]
            if state == LISTENING and int(port, 16) in held.values():
                found[int(port, 16)] = host
    assert set(found) == set(held.values())
    assert set(found.values()) <= LOOPBACK


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_it_is_stopped_while_clients_ask(number, exports, tmp_path):
    ports = take_ports({"http": None, "grpc": None})
    options = ("--http-port", ports["http"], "--grpc-port", ports["grpc"], "--out", tmp_path / "o")
    with _started("--export", exports[0], "--requests", "3000", *options) as process:
        deadline = time.monotonic() + 120
        while not answers(ports["grpc"]):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number
    assert said.splitlines()[-1].endswith("stopped. Nothing was written, and the server is gone.")
    assert not any(map(answers, ports.values()))
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_loaded_ends_the_server_with_its_last_words(exports, tmp_path):
    shutil.copytree(exports[1], tmp_path / "broken")
    shutil.rmtree(tmp_path / "broken" / "variables")
    with pytest.raises(SystemExit, match=r"The server .*end of its log:\n(.*\n)*.*variables"):
        serving.main(["--export", str(tmp_path / "broken"), "--hold"])
