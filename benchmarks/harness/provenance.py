"""The origin of numbers: the command, the machine, the versions, the state of the source."""

import importlib.metadata
import os
import platform
import subprocess

from benchmarks.harness.process import ROOT
from training.command.shell import command_of


def origin(name, arguments):
    """Returns what every record begins with: `command`, `source` and `machine`.

    Args:
        name: name of the benchmark.
        arguments: list of words, or `None` for those of this process.
    """
    command = command_of(name, arguments, package="benchmarks")
    return {"command": command, "source": source(), "machine": machine()}


def machine():
    """Returns the kind of machine: `cpu`, `cores` that this process may use, `gpu` or `None`.

    The GPU is the first that the driver lists, whether or not the backend uses it: asked of the
    backend, as `training.machine.kind` does, this process would hold what others measure.
    """
    from training.machine.kind import cpu_name

    gpus = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "gpu": gpus.splitlines()[0].strip() if gpus else None,
    }


def source():
    """Returns the `commit` and whether the tree is `dirty`; both `None` outside of git."""
    commit = _output(["git", "rev-parse", "HEAD"]) if (ROOT / ".git").exists() else None
    if commit is None:
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(_output(["git", "status", "--porcelain"]))}


def versions():
    """Returns the versions of what does the computing in this process, by name."""
    import keras

    backend = keras.backend.backend()
    names = ["keras", "numpy", *{"jax": ["jax", "jaxlib"]}.get(backend, [backend])]
    return {
        "python": platform.python_version(),
        "backend": backend,
        **{name: importlib.metadata.version(name) for name in names},
    }


def _output(command):
    """Returns what a command prints, or `None` if it fails or is not there."""
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
