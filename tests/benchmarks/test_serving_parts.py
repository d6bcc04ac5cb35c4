"""The benchmark of serving, as far as no server is needed; the rest is in `test_serving.py`."""

import pathlib
import signal
import socket
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.serving import __main__ as serving
from benchmarks.serving import answers as own
from benchmarks.serving import models, report, requests, server, threads
from benchmarks.serving.settings import Settings

# Stands for a server: says that it is ready, has a child, and does not stop when it is asked to.
STUBBORN = """
import http.server, signal, subprocess, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *arguments):
        pass
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(f"{child.pid}")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
TEXT = models.Served("text", pathlib.Path("text"), None, ("pooled_output",))
IDS = models.Served("ids", pathlib.Path("ids"), 7, ("pooled_output",))
ROWS = [
    {"model": "ids", "how": "in process", "clients": 4, "per_second": 50.0, "p50_ms": 1.0},
    {
        "model": "ids",
        "how": "gRPC",
        "clients": 4,
        "per_second": 25.0,
        "p50_ms": 2.25,
        "wrong": 0,
        "failed": 1,
        "largest_error": 2e-7,
        "batches": {"2": 5, "11": 7},
    },
]


def test_ports_are_the_given_ones_or_free_ones_that_differ():
    ports = server.take_ports({"http": None, "grpc": None})
    assert ports["http"] != ports["grpc"]
    assert server.take_ports(ports) == ports
    assert not server.answers(ports["http"])


def test_a_taken_port_is_refused_before_anything_starts():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert server.answers(port)
        with pytest.raises(ValueError, match=f"port of grpc is taken .*Received: {port}"):
            server.take_ports({"http": None, "grpc": port})
    with pytest.raises(ValueError, match="port of grpc is taken"):
        server.take_ports({"http": port, "grpc": port})


def test_a_server_that_dies_at_start_shows_the_end_of_its_log(tmp_path):
    command = [sys.executable, "-c", "print('cannot\\nload it'); raise SystemExit(3)"]
    ports = server.take_ports({"http": None})
    with (
        pytest.raises(server.ServerError, match=r"exit code 3.*\n    cannot\n    load it"),
        server.running(command, tmp_path, ports, ["text"]),
    ):
        pytest.fail("it is not ready")


def test_a_server_that_is_never_ready_is_not_awaited_forever(tmp_path):
    command = [sys.executable, "-c", "import time; print('thinking', flush=True); time.sleep(600)"]
    ports = server.take_ports({"http": None})
    started = server.running(command, tmp_path, ports, ["text"], patience=0.5)
    with pytest.raises(server.ServerError, match="not ready after 0.5 seconds"), started:
        pytest.fail("it is not ready")


@pytest.mark.parametrize("end", [None, ZeroDivisionError, KeyboardInterrupt])
def test_nothing_is_left_of_a_server_however_the_work_ends(end, tmp_path):
    ports = server.take_ports({"http": None})
    command = [sys.executable, "-c", STUBBORN, str(ports["http"])]

    def work():
        with server.running(command, tmp_path, ports, ["a"], grace=0.2) as process:
            assert process.poll() is None
            assert server.answers(ports["http"])
            if end:
                raise end

    if end:
        with pytest.raises(end):
            work()
    else:
        work()
    assert not server.answers(ports["http"])
    child = int((tmp_path / "pids").read_text())
    deadline = time.monotonic() + 10
    while _is_running(child):  # killed, but perhaps not yet collected by its new parent
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_folder_that_is_no_export_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be the folder of a SavedModel.*No such file"):
        models.describe(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="The file must be a SavedModel"):
        models.describe(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ValueError, match="must have the signature 'serving_default'"):
        models.describe(tmp_path)


def _save(folder, **specs):
    module = tf.Module()
    module.serve = tf.function(lambda **inputs: {"out": next(iter(inputs.values()))})
    specs = {name: tf.TensorSpec(*spec, name=name) for name, spec in specs.items()}
    tf.saved_model.save(module, str(folder), module.serve.get_concrete_function(**specs))


def test_a_model_that_takes_something_else_is_refused(tmp_path):
    _save(tmp_path, image=([None, 3], tf.float32))
    with pytest.raises(ValueError, match=r"must take one of .*with \['image'\]"):
        models.describe(tmp_path)


def test_the_length_of_ids_is_read_and_must_be_fixed(tmp_path):
    names = ("input_word_ids", "input_mask", "input_type_ids")
    _save(tmp_path / "fixed", **dict.fromkeys(names, ([None, 9], tf.int32)))
    served = models.describe(tmp_path / "fixed")
    assert (served.kind, served.length, served.outputs) == ("ids", 9, ("out",))
    with pytest.raises(ValueError, match=r"--outputs must be of \['out'\].*\['pooled'\]"):
        models.describe(tmp_path / "fixed", ("pooled",))
    _save(tmp_path / "dynamic", **dict.fromkeys(names, ([None, None], tf.int32)))
    with pytest.raises(ValueError, match="must have one fixed length"):
        models.describe(tmp_path / "dynamic")


def test_requests_have_mixed_lengths_and_are_the_same_each_time():
    texts = requests.make(TEXT, 64)
    assert texts == requests.make(TEXT, 64)
    assert [requests.rows(request) for request in texts[6:9]] == [1, 3, 1]
    assert len({len(request["text"][0].split()) for request in texts}) > 20
    ids = requests.make(IDS, 64)
    lengths = {sum(row) for request in ids for row in request["input_mask"]}
    assert lengths == set(range(2, 8))
    for request in ids:
        tokens, mask = np.array(request["input_word_ids"]), np.array(request["input_mask"])
        assert tokens.shape == mask.shape == np.shape(request["input_type_ids"])
        assert tokens.shape[1] == 7
        assert ((tokens > 0) == mask).all()


def test_every_request_is_asked_once_by_some_client_and_errors_are_outcomes():
    made, ticks = [], []

    def connect():
        made.append(1)
        return lambda request: 12 // request

    outcomes, total = threads.ask_all(list(range(40)), connect, 3, lambda: ticks.append(1))
    assert (len(made), len(ticks)) == (3, 4)
    assert [answer for answer, _ in outcomes[1:]] == [12 // value for value in range(1, 40)]
    assert isinstance(outcomes[0][0], ZeroDivisionError)
    assert 0 <= max(seconds for _, seconds in outcomes) <= total


def test_a_client_that_cannot_connect_fails_its_requests():
    def connect():
        raise ConnectionRefusedError

    outcomes, _ = threads.ask_all([1, 2], connect, 2, lambda: None)
    assert [type(answer) for answer, _ in outcomes] == [ConnectionRefusedError] * 2


def test_answers_come_back_from_their_file(tmp_path):
    answers = [{"a": np.full((rows, 2), rows, "float32")} for rows in (1, 3, 2)]
    own.write_answers(tmp_path / "answers.npz", answers)
    read = own.read_answers(tmp_path / "answers.npz", [1, 3, 2])
    for given, wanted in zip(read, answers, strict=True):
        np.testing.assert_array_equal(given["a"], wanted["a"])


def test_wrong_missing_and_failed_answers_are_counted():
    expected = [{"a": np.zeros((1, 2)), "b": np.ones((1, 1))}] * 6
    right = {name: value + 9e-6 for name, value in expected[0].items()}
    wrong = [
        {**right, "b": np.full((1, 1), 1.1)},
        {**right, "a": np.full((1, 2), np.nan)},
        {**right, "a": np.zeros((2, 1))},
        {"a": right["a"]},
    ]
    outcomes = [(right, 1), *((answer, 1) for answer in wrong), RuntimeError("status 500")]
    found = own.compare(outcomes, expected)
    assert (found["compared"], found["wrong"], found["failed"]) == (6, 4, 1)
    assert found["largest_error"] == pytest.approx(0.1)
    assert found["first_failure"] == "RuntimeError: status 500"


def test_batches_are_counted_from_what_their_rows_say():
    outcomes = [(None, 4), (None, 1), (None, 4), ValueError(), (None, 4)]
    found = own.batches(outcomes, [1, 1, 2, 5, 1])
    assert found == {"batches": {1: 1, 4: 1}, "mean_batch": 2.5}
    assert own.batches([ValueError()], [1])["mean_batch"] is None


def test_the_table_compares_with_direct_calls_of_as_many_clients():
    lines = report.table(ROWS).splitlines()
    assert len({len(line) for line in lines}) == 1, "the columns are not aligned"
    cells = [cell.strip() for cell in lines[3].split("|")[1:-1]]
    assert cells == ["ids", "gRPC", "4", "2.2", "-", "25", "0.50", "-", "0", "1", "2.0e-07"]


def test_the_page_says_how_it_was_made_and_which_batches_there_were():
    record = {
        "command": "python -m benchmarks.serving",
        "source": {"commit": "abc", "dirty": False},
        "machine": {"cores": 2, "cpu": "a CPU", "gpu": None},
        "load_before": 0.5,
        "versions": {"mlserver": "1.7.1"},
        "definitions": report.definitions(Settings()),
        "rows": ROWS,
    }
    page = report.markdown(record)
    assert "Made by `python -m benchmarks.serving`, commit abc, on 2 cores of a CPU" in page
    assert "- Batches, ids through gRPC, by rows: 5 of 2, 7 of 11." in page
    assert "joins up to 32 requests that come within 10 ms" in page
    busy = "The machine did other work too"
    assert busy not in page
    assert busy in report.markdown({**record, "load_before": 0.6})


def test_sigterm_stops_the_work_as_ctrl_c_does():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), serving._terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
