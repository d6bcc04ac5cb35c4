"""A model server: its ports on 127.0.0.1, the folder it reads, and its process."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

from benchmarks.serving.models import SIGNATURE

HOST = "127.0.0.1"
LAST_LINES = 20
_RUNTIME = pathlib.Path(__file__).with_name("runtime.py")
_MODULE = "saved_model_runtime"


class ServerError(ChildProcessError):
    """A server that did not start or did not go."""


def take_ports(given):
    """Returns a port for each name: the given one, or any that is free.

    A free port may be taken by somebody else before the server has it: the server says so then.

    Args:
        given: dictionary, name -> number, or `None` for a free one.

    Raises:
        ValueError: if a given port is taken, or is given twice.
    """
    ports = {}
    with contextlib.ExitStack() as stack:
        for name, number in sorted(given.items(), key=lambda item: item[1] is None):
            listener = stack.enter_context(socket.socket())
            # What an ended server left behind is no obstacle; one that listens is.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, number or 0))
                listener.listen()
            except OSError as error:
                raise ValueError(
                    f"The port of {name} is taken or not allowed ({error.strerror}). Choose "
                    f"another one, or none to get a free one. Received: {number}"
                ) from error
            ports[name] = listener.getsockname()[1]
    return ports


def answers(number):
    """Returns whether somebody listens on a port."""
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.connect_ex((HOST, number)) == 0


def write_folder(folder, models, ports, batch_size, wait_ms):
    """Writes what `mlserver start` reads.

    Args:
        folder: `pathlib.Path`, there and empty.
        models: list of `Served`.
        ports: dictionary with `http`, `grpc` and `metrics`.
        batch_size: most requests of a batch; 1 switches batching off.
        wait_ms: longest wait for a batch to fill, in milliseconds.
    """
    (folder / f"{_MODULE}.py").write_bytes(_RUNTIME.read_bytes())
    server = {
        "host": HOST,
        "http_port": ports["http"],
        "grpc_port": ports["grpc"],
        "metrics_port": ports["metrics"],
        "parallel_workers": 0,
        "debug": False,
    }
    _write(folder / "settings.json", server)
    for served in models:
        (folder / served.kind).mkdir()
        settings = {
            "name": served.kind,
            "implementation": f"{_MODULE}.SavedModelRuntime",
            "max_batch_size": batch_size,
            "max_batch_time": wait_ms / 1e3,
            "parameters": {
                "uri": str(served.folder.resolve()),
                "extra": {"signature": SIGNATURE},
            },
        }
        _write(folder / served.kind / "model-settings.json", settings)


def _write(file, settings):
    file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def running(command, folder, ports, models, patience=180, grace=20):
    """Starts a server of the Open Inference Protocol (KServe V2); when the block ends, stops it.

    Whatever ends the block, an error or Ctrl-C too, nothing of the server is left: it is asked to
    stop, and killed with all of its children if it does not.

    Args:
        command: list, the program and its arguments.
        folder: `pathlib.Path` where it runs; its output goes to `server.log` in there.
        ports: dictionary, name -> number; `http` is the one that is asked for its health.
        models: names of the models that must be ready.
        patience: seconds until it must be ready.
        grace: seconds that it has to stop by itself.

    Yields:
        The process.

    Raises:
        ServerError: if it ends before it is ready, or is not ready in time, with the last lines
            of its log; or if a port still answers after its end.
    """
    log = folder / "server.log"
    # TensorFlow's pip package computes on the CPU; no settings of the user's own servers.
    variables = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.startswith("MLSERVER_")
    }
    variables.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", PYTHONUNBUFFERED="1")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            start_new_session=True,  # so that Ctrl-C reaches us alone, and we stop it
        )
        try:
            _wait(process, ports["http"], models, patience, log)
            yield process
        finally:
            _stop(process, grace)
    left = sorted(name for name, number in ports.items() if answers(number))
    if left:
        raise ServerError(f"The server was stopped, but these ports still answer: {left}")


def last_lines(log):
    """Returns the end of a log file, and before it the errors that came earlier."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    earlier = [line for line in lines[:-LAST_LINES] if "Error" in line][-LAST_LINES:]
    return "\n".join(f"    {line}" for line in (*earlier, *lines[-LAST_LINES:]))


def _wait(process, port, models, patience, log):
    paths = ["/v2/health/ready", *(f"/v2/models/{model}/ready" for model in models)]
    end = time.monotonic() + patience
    while not all(_is_ok(port, path) for path in paths):
        if process.poll() is not None:
            raise ServerError(
                f"The server ended before it was ready, with exit code {process.returncode}. "
                f"The end of its log:\n{last_lines(log)}"
            )
        if time.monotonic() > end:
            raise ServerError(
                f"The server was not ready after {patience} seconds. The end of its log:\n"
                f"{last_lines(log)}"
            )
        time.sleep(0.1)


def _is_ok(port, path):
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process, grace):
    """Ends a process and all that it started."""
    try:
        process.terminate()
        process.wait(grace)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # The leader of the group may be gone, and others still there.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
