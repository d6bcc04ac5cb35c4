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

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import contextlib
import json
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

from benchmarks import (
    _report,
    _serving_answers,
    _serving_collect,
    _serving_environment,
    _serving_models,
    _serving_ports,
    _serving_report,
    _serving_settings,
    _training_report,
)
from benchmarks._child import ChildError
from benchmarks._machine import machine, source
from benchmarks._serving_server import ServerError

VERSIONS = """
import importlib.metadata, json, platform
names = {"mlserver", "tensorflow", "tensorflow-text", "numpy", "protobuf"}
found = {one.name: one.version for one in importlib.metadata.distributions() if one.name in names}
print(json.dumps({"python": platform.python_version(), **dict(sorted(found.items()))}))
"""


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    settings = _serving_settings.parse(arguments, description=__doc__)
    facts = {
        "command": shlex.join(
            ["python", "-m", "benchmarks.serving", *_serving_settings.shown(arguments)]
        ),
        "source": source(),
        "machine": machine(),
        "load_before": os.getloadavg()[0],
    }
    try:
        with _terminated_as_interrupted(), tempfile.TemporaryDirectory() as temporary:
            models = _models(settings, pathlib.Path(temporary))
            python, reason = _serving_environment.ensure(settings.environment)
            if python is None:
                sys.exit(f"serving: the server's environment could not be made: {reason}")
            if settings.hold:
                _hold(settings, python, models, pathlib.Path(temporary))
                return
            found = _serving_collect.collect(settings, python, models)
    except (ChildError, ServerError, ValueError) as error:
        sys.exit(f"serving: {error}")
    except KeyboardInterrupt:
        sys.exit("serving: stopped; nothing was written, and the server is gone")
    failures = [row.pop("first_failure", None) for row in found["rows"]]
    record = {
        **facts,
        "versions": _versions(python),
        "versions_in_process": _versions(sys.executable),
        "settings": _facts(settings, models),
        "definitions": definitions(settings),
        **found,
    }
    page = _serving_report.markdown(record)
    texts = (_training_report.json_text(record), page)
    _report.write_files(settings.out, dict(zip(_serving_settings.FILES, texts, strict=True)))
    print(page)
    print(f"written: {', '.join(str(settings.out / name) for name in _serving_settings.FILES)}")
    wrong, failed = (sum(row.get(key, 0) for row in record["rows"]) for key in ("wrong", "failed"))
    if wrong or failed:
        first = next((f" The first failure: {failure}" for failure in failures if failure), "")
        sys.exit(f"serving: {wrong} answers are wrong, {failed} requests failed.{first}")


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    batching = (
        f"joins up to {settings.batch_size} requests that come within {settings.wait_ms:g} ms"
        if settings.batch_size > 1
        else "does not join requests"
    )
    return [
        f"{settings.requests:,} requests of each model and protocol, every eighth with three rows, "
        f"the others with one; texts of 0 to 80 words, ids with 2 tokens or more and padding. "
        f"{settings.clients} clients, each with one connection, ask as fast as they can; they run "
        "on the same cores as the server.",
        f"The server {batching}. Mean batch: rows that were computed together.",
        "In process: the SavedModel's signature called from threads of one process, without "
        "batching. To in process: requests per second by those of as many threads.",
        "Wrong: largest absolute difference from the direct call above "
        f"{_serving_answers.TOLERANCE:g}, in any output that was asked for. The warm-up of "
        f"{4 * settings.clients} requests is compared too, but not timed.",
    ]


def _models(settings, folder):
    """Returns the `Served` models, made in a folder if none are given."""
    folders = settings.exports
    if not folders:
        folders = _serving_models.export(folder, settings.size, settings.length)
    models = [_serving_models.describe(path, settings.outputs) for path in folders]
    kinds = [served.kind for served in models]
    if len(set(kinds)) < len(kinds):
        raise ValueError(
            "--export must name one model with strings and one with ids at most. "
            f"Received: {[str(path) for path in folders]}, which are {kinds}"
        )
    return models


def _hold(settings, python, models, folder):
    folder = folder / "server"
    folder.mkdir()
    with _serving_collect.server(settings, python, models, folder) as ports:
        host = _serving_ports.HOST
        names = ", ".join(served.kind for served in models)
        print(
            f"REST on http://{host}:{ports['http']}, gRPC on {host}:{ports['grpc']}; models: "
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
        raise KeyboardInterrupt

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
    made = {} if settings.exports else {"position": _serving_models.POSITION, "size": settings.size}
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
