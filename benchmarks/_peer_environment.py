"""The separate Python environment of the peer, Hugging Face's BERT on torch."""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

TRANSFORMERS = "4.57.6"  # the last with `relative_key_query`
# `==` takes the CPU build, 2.13.0+cpu, where pip's indexes have it, else the full one.
REQUIREMENTS = (f"transformers=={TRANSFORMERS}", "torch==2.13.0", "numpy")
_CHECK = f"import torch, transformers; assert transformers.__version__ == '{TRANSFORMERS}'"


def default_folder():
    """Returns where the environment is made unless told otherwise: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "keras_tupe" / f"peer-transformers-{TRANSFORMERS}"


def problem(folder):
    """Returns a sentence if a folder can be no environment, else `None`."""
    if not folder.exists() or (folder / "pyvenv.cfg").is_file():
        return None
    if folder.is_dir() and not any(folder.iterdir()):
        return None
    return (
        "--peer-environment must be a virtual environment, or a folder that is new or empty. "
        f"Received: {str(folder)!r}"
    )


def ensure(folder):
    """Makes the environment if it is not there yet.

    Args:
        folder: `pathlib.Path`.

    Returns:
        `(python, None)`, the path of its interpreter, or `(None, reason)` if it cannot be made;
        what was begun is then removed.
    """
    python = folder / "bin" / "python"
    if _works(python):
        return str(python), None
    print(
        f"Making the peer's environment, once, in {folder}: {', '.join(REQUIREMENTS)}. This may "
        "download gigabytes; if pip knows an index with CPU builds of torch, far less.",
        file=sys.stderr,
    )
    is_new = not folder.exists()
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
        _call([python, "-m", "pip", "install", "--quiet", "--retries", "2", *REQUIREMENTS])
        _call([python, "-c", _CHECK])
    except (OSError, subprocess.CalledProcessError) as error:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        return None, _last_line(error)
    return str(python), None


def _call(command):
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=variables)


def _works(python):
    try:
        _call([python, "-c", _CHECK])
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _last_line(error):
    """Returns what went wrong, in one line."""
    said = getattr(error, "stderr", None) or str(error)
    said = said.decode(errors="replace") if isinstance(said, bytes) else said
    return [line.strip() for line in said.splitlines() if line.strip()][-1][:300]
