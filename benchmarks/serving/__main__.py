"""Exported models behind a server: right under concurrent requests of mixed lengths, and how fast.

    python -m benchmarks.serving
    python -m benchmarks.serving --export saved_models/quickstart/text
    python -m benchmarks.serving --hold --http-port 8080 --grpc-port 8081

Starts MLServer (Open Inference Protocol, which is KServe's V2), in a Python environment of its own
that is made once, with two small SavedModels of `keras_tupe.export`: `text` takes strings, `ids`
takes token ids of one fixed length. 16 clients send 1,000 requests of mixed lengths to each,
through REST and through gRPC, while the server joins requests to batches. Every answer is compared
with a direct call of the SavedModel; one that is wrong, or missing, makes the exit status 1. Then
the server is stopped, and nothing of it is left, whatever happened. Writes `serving.json` and
`serving.md` to `--out`. `--hold` serves until Ctrl-C instead. One minute on two cores.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

from benchmarks.harness.environments import SERVER, folder_of
from benchmarks.serving.settings import Settings, shown
from training.command.settings import parse
from training.command.shell import sentences

VERSIONS = """
import importlib.metadata, json, platform
names = {"mlserver", "tensorflow", "tensorflow-text", "numpy", "protobuf"}
found = {one.name: one.version for one in importlib.metadata.distributions() if one.name in names}
print(json.dumps({"python": platform.python_version(), **dict(sorted(found.items()))}))
"""


def main(arguments=None):
    """Runs the command line."""
    words = sys.argv[1:] if arguments is None else arguments
    settings = parse(Settings, words, __doc__, "serving")
    from benchmarks.harness import provenance, report
    from benchmarks.serving.collect import collect
    from benchmarks.serving.report import definitions, markdown

    facts = {**provenance.origin("serving", shown(words)), "load_before": os.getloadavg()[0]}
    with (
        sentences("serving", "Nothing was written, and the server is gone."),
        _terminated_as_interrupted(),
        tempfile.TemporaryDirectory() as temporary,
    ):
        models = _models(settings, pathlib.Path(temporary))
        python, reason = SERVER.ensure(folder_of(settings.environment))
        if python is None:
            sys.exit(f"serving: the server's environment could not be made: {reason}")
        if settings.hold:
            _hold(settings, python, models, pathlib.Path(temporary))
            return
        found = collect(settings, python, models)
    failures = [row.pop("first_failure", None) for row in found["rows"]]
    record = {
        **facts,
        "versions": _versions(python),
        "versions_in_process": _versions(sys.executable),
        "settings": _facts(settings, models),
        "definitions": definitions(settings),
        **found,
    }
    report.write(settings.out, "serving", record, markdown(record))
    wrong, failed = (sum(row.get(key, 0) for row in record["rows"]) for key in ("wrong", "failed"))
    if wrong or failed:
        first = next((f" The first failure: {failure}" for failure in failures if failure), "")
        sys.exit(f"serving: {wrong} answers are wrong, {failed} requests failed.{first}")


def _models(settings, folder):
    """Returns the `Served` models, made in a folder if none are given."""
    from benchmarks.serving.models import describe, export

    folders = settings.folders() or export(folder, settings.size, settings.length)
    models = [describe(path, settings.wanted()) for path in folders]
    kinds = [served.kind for served in models]
    if len(set(kinds)) < len(kinds):
        raise ValueError(
            "--export must name one model with strings and one with ids at most. "
            f"Received: {[str(path) for path in folders]}, which are {kinds}"
        )
    return models


def _hold(settings, python, models, folder):
    from benchmarks.serving.collect import server
    from benchmarks.serving.server import HOST

    folder = folder / "server"
    folder.mkdir()
    with server(settings, python, models, folder) as ports:
        names = ", ".join(served.kind for served in models)
        print(
            f"REST on http://{HOST}:{ports['http']}, gRPC on {HOST}:{ports['grpc']}; models: "
            f"{names}. Ctrl-C ends it.",
            flush=True,
        )
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    print("The server is gone.")


@contextlib.contextmanager
def _terminated_as_interrupted():
    """Lets SIGTERM do what Ctrl-C does, so that the server is stopped."""

    def interrupt(number, frame):
        stopped = KeyboardInterrupt()
        stopped.signal = number  # for the exit code
        raise stopped

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _versions(python):
    """Returns the versions of an environment's packages, by name."""
    found = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def _facts(settings, models):
    from benchmarks.serving.models import POSITION

    made = {} if settings.export else {"position": POSITION, "size": settings.size}
    return {
        **made,
        "models": {
            served.kind: {"length": served.length, "outputs": served.outputs} for served in models
        },
        "clients": settings.clients,
        "requests": settings.requests,
        "batch_size": settings.batch_size,
        "wait_ms": settings.wait_ms,
    }


if __name__ == "__main__":
    main()
