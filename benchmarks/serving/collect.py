"""All numbers of a run: direct calls, a server, its clients."""

import contextlib
import pathlib
import tempfile

from tqdm import tqdm

from benchmarks.harness import process
from benchmarks.serving import requests
from benchmarks.serving.answers import write_requests
from benchmarks.serving.models import SIGNATURE
from benchmarks.serving.server import HOST, running, take_ports, write_folder
from benchmarks.serving.threads import TICK

PROTOCOLS = {"REST": "http", "gRPC": "grpc"}  # -> name of the port


@contextlib.contextmanager
def server(settings, python, models, folder):
    """Runs MLServer until the block ends.

    Args:
        settings: a `Settings`.
        python: the interpreter of the server's environment.
        models: list of `Served`.
        folder: `pathlib.Path`, there and empty.

    Yields:
        Dictionary of ports.

    Raises:
        ValueError: if a port is taken.
        ServerError: if the server does not start or does not go.
    """
    given = {"http": settings.http_port, "grpc": settings.grpc_port, "metrics": None}
    ports = take_ports(given)
    write_folder(folder, models, ports, settings.batch_size, settings.wait_ms)
    command = [pathlib.Path(python).with_name("mlserver"), "start", "."]
    names = [served.kind for served in models]
    with running(command, folder, ports, names):
        yield ports


def collect(settings, python, models):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.
        python: the interpreter of the server's environment.
        models: list of `Served`.

    Returns:
        A dictionary: `rows`, one for each model and way to ask it; `apart`, by model.

    Raises:
        ValueError: if a port is taken.
        ServerError: if the server does not start or does not go.
        ChildError: if a process with direct calls or clients fails.
    """
    passes = len({1, settings.clients}) + len(PROTOCOLS)
    total = len(models) * passes * (settings.requests // TICK)
    rows, apart = [], {}
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(tqdm(total=total * TICK, unit="request", disable=None))
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def tick():
            bar.update(TICK)

        jobs = [_direct(settings, served, folder, tick, rows, apart) for served in models]
        (folder / "server").mkdir()
        bar.set_description("server starts")
        ports = stack.enter_context(server(settings, python, models, folder / "server"))
        for job in jobs:
            for how, port in PROTOCOLS.items():
                bar.set_description(f"{job['model']}, {how}")
                asked = {**job, "how": how, "port": ports[port]}
                row = process.run("benchmarks.serving.clients", asked, tick, python=python)
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
        "host": HOST,
    }
    write_requests(job["requests"], requests.make(served, settings.requests))
    found = process.run("benchmarks.serving.direct", job, tick)
    rows += [{"model": served.kind, **row} for row in found["rows"]]
    apart[served.kind] = found["apart"]
    return job
