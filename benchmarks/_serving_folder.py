"""The folder that MLServer reads."""

import json
import pathlib

from benchmarks._serving_models import SIGNATURE
from benchmarks._serving_ports import HOST

RUNTIME = pathlib.Path(__file__).with_name("_serving_runtime.py")
_MODULE = "saved_model_runtime"


def write(folder, models, ports, batch_size, wait_ms):
    """Writes what `mlserver start` reads.

    Args:
        folder: `pathlib.Path`, there and empty.
        models: list of `Served`.
        ports: dictionary with `http`, `grpc` and `metrics`.
        batch_size: most requests of a batch; 1 switches batching off.
        wait_ms: longest wait for a batch to fill, in milliseconds.
    """
    (folder / f"{_MODULE}.py").write_bytes(RUNTIME.read_bytes())
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
