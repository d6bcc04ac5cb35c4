"""The separate Python environment of the server.

MLServer asks for protobuf < 7, so it can never be where this package and its TensorFlow are.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

from benchmarks._peer_environment import _call, _last_line

MLSERVER = "1.7.1"
TENSORFLOW = "2.21"  # of the package itself; the answers of another may differ
REQUIREMENTS = (
    f"mlserver=={MLSERVER}",
    f"tensorflow=={TENSORFLOW}.*",
    f"tensorflow-text=={TENSORFLOW}.*",
    "tritonclient[grpc]>=2.60,<3",
)
FIRST_PYTHON_WITHOUT = (3, 13)
# The files alone: importing TensorFlow takes seconds.
_CHECK = (
    "from importlib.metadata import version\n"
    "import importlib.util, tritonclient.grpc\n"
    f"assert version('mlserver') == '{MLSERVER}'\n"
    f"assert version('tensorflow').startswith('{TENSORFLOW}.')\n"
    f"assert version('tensorflow-text').startswith('{TENSORFLOW}.')\n"
    "assert importlib.util.find_spec('tensorflow_text')"
)


def default_folder():
    """Returns where the environment is made unless told otherwise: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "keras_tupe" / f"serving-mlserver-{MLSERVER}"


def problem(folder):
    """Returns a sentence if a folder can be no environment, else `None`."""
    if not folder.exists() or (folder / "pyvenv.cfg").is_file():
        return None
    if folder.is_dir() and not any(folder.iterdir()):
        return None
    return (
        "--environment must be a virtual environment, or a folder that is new or empty. "
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
    if works(folder):
        return python, None
    if sys.version_info >= FIRST_PYTHON_WITHOUT:
        return None, (
            f"MLServer {MLSERVER} is for Python below {'.'.join(map(str, FIRST_PYTHON_WITHOUT))}. "
            "Make one with an older Python and give its folder as --environment. "
            f"Received: Python {sys.version.split()[0]}"
        )
    print(
        f"Making the server's environment, once, in {folder}: {', '.join(REQUIREMENTS)}. "
        "It takes 2.5 GB of disk.",
        file=sys.stderr,
    )
    is_new = not folder.exists()
    done = False
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
        _call([python, "-m", "pip", "install", "--quiet", "--retries", "2", *REQUIREMENTS])
        _call([python, "-c", _CHECK])
        done = True
    except (OSError, subprocess.CalledProcessError) as error:
        return None, _last_line(error)
    finally:
        if is_new and not done:  # Ctrl-C too
            shutil.rmtree(folder, ignore_errors=True)
    return python, None


def works(folder):
    """Returns whether a folder is an environment with all that is needed."""
    try:
        _call([folder / "bin" / "python", "-c", _CHECK])
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
