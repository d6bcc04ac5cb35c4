"""All numbers of a run: direct calls, a server, its clients."""

import contextlib
import pathlib
import tempfile

from tqdm import tqdm

from benchmarks import (
    _child,
    _serving_answers,
    _serving_folder,
    _serving_ports,
    _serving_requests,
    _serving_server,
    _serving_threads,
)
from benchmarks._serving_models import SIGNATURE

PROTOCOLS = {"REST": "http", "gRPC": "grpc"}  # -> name of the port


@contextlib.contextmanager
def server(settings, python, models, folder):
    """Runs MLServer until the block ends.

    Args:
        settings: a `Settings` of `_serving_settings`.
        python: `pathlib.Path` of the interpreter of the server's environment.
        models: list of `Served`.
        folder: `pathlib.Path`, there and empty.

    Yields:
        Dictionary of ports.

    Raises:
        ValueError: if a port is taken.
        ServerError: if the server does not start or does not go.
    """
    given = {"http": settings.http_port, "grpc": settings.grpc_port, "metrics": None}
    ports = _serving_ports.take(given)
    _serving_folder.write(folder, models, ports, settings.batch_size, settings.wait_ms)
    command = [python.with_name("mlserver"), "start", "."]
    names = [served.kind for served in models]
    with _serving_server.running(command, folder, ports, names):
        yield ports


def collect(settings, python, models):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings` of `_serving_settings`.
        python: `pathlib.Path` of the interpreter of the server's environment.
        models: list of `Served`.

    Returns:
        A dictionary: `rows`, one for each model and way to ask it; `apart`, by model.

    Raises:
        ValueError: if a port is taken.
        ServerError: if the server does not start or does not go.
        ChildError: if a process with direct calls or clients fails.
    """
    passes = len({1, settings.clients}) + len(PROTOCOLS)
    total = len(models) * passes * (settings.requests // _serving_threads.TICK)
    rows, apart = [], {}
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(
            tqdm(total=total * _serving_threads.TICK, unit="request", disable=None)
        )
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def tick():
            bar.update(_serving_threads.TICK)

        jobs = [_direct(settings, served, folder, tick, rows, apart) for served in models]
        (folder / "server").mkdir()
        bar.set_description("server starts")
        ports = stack.enter_context(server(settings, python, models, folder / "server"))
        for job in jobs:
            for how, port in PROTOCOLS.items():
                bar.set_description(f"{job['model']}, {how}")
                asked = {**job, "how": how, "port": ports[port]}
                row = _child.run("benchmarks._serving_load", asked, tick, python=str(python))
                rows.append({"model": job["model"], **row})
        bar.set_description("server stops")
    return {"rows": sorted(rows, key=lambda row: row["model"], reverse=True), "apart": apart}


def _direct(settings, served, folder, tick, rows, apart):
    """Calls a model in a process of its own; returns the job of its clients."""
    job = {
        "model": served.kind,
        "folder": str(served.folder.resolve()),
        "signature": SIGNATURE,
        "outputs": served.outputs,
        "requests": str(folder / f"{served.kind}.json"),
        "answers": str(folder / f"{served.kind}.npz"),
        "clients": settings.clients,
        "warm_up": 4 * settings.clients,
        "host": _serving_ports.HOST,
    }
    requests = _serving_requests.make(served, settings.requests)
    _serving_answers.write_requests(job["requests"], requests)
    found = _child.run("benchmarks._serving_direct", job, tick)
    rows += [{"model": served.kind, **row} for row in found["rows"]]
    apart[served.kind] = found["apart"]
    return job
