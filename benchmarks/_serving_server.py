"""A server as a process: started, awaited, stopped, and then really gone."""

import contextlib
import http.client
import os
import signal
import subprocess
import time

from benchmarks import _serving_ports

LAST_LINES = 20


class ServerError(Exception):
    """A server that did not start or did not go."""


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
    left = sorted(name for name, number in ports.items() if _serving_ports.answers(number))
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
    connection = http.client.HTTPConnection(_serving_ports.HOST, port, timeout=5)
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
