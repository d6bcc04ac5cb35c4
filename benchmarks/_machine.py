"""Where numbers come from: the machine and the state of the source."""

import os
import subprocess

from benchmarks._child import ROOT
from training.machine.kind import cpu_name


def machine():
    """Returns the kind of machine: `cpu`, `cores` that this process may use, `gpu` or `None`.

    The GPU is the first that the driver lists, whether or not the backend uses it.
    """
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


def _output(command):
    """Returns what a command prints, or `None` if it fails or is not there."""
    try:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
