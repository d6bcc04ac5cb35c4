"""The separate Python environment of the server.

MLServer asks for protobuf < 7, so it can never be where this package and its TensorFlow are.
"""

import pathlib
import sys

from benchmarks._own_environment import OwnEnvironment

MLSERVER = "1.7.1"
TENSORFLOW = "2.21"  # of the package itself; the answers of another may differ
FIRST_PYTHON_WITHOUT = (3, 13)

_ENVIRONMENT = OwnEnvironment(
    name=f"serving-mlserver-{MLSERVER}",
    option="--environment",
    what="the server",
    cost="It takes 2.5 GB of disk.",
    requirements=(
        f"mlserver=={MLSERVER}",
        f"tensorflow=={TENSORFLOW}.*",
        f"tensorflow-text=={TENSORFLOW}.*",
        "tritonclient[grpc]>=2.60,<3",
    ),
    # the files alone: importing TensorFlow takes seconds
    check=(
        "from importlib.metadata import version\n"
        "import importlib.util, tritonclient.grpc\n"
        f"assert version('mlserver') == '{MLSERVER}'\n"
        f"assert version('tensorflow').startswith('{TENSORFLOW}.')\n"
        f"assert version('tensorflow-text').startswith('{TENSORFLOW}.')\n"
        "assert importlib.util.find_spec('tensorflow_text')"
    ),
)
default_folder = _ENVIRONMENT.default_folder
problem = _ENVIRONMENT.problem
works = _ENVIRONMENT.works


def ensure(folder):
    """As `OwnEnvironment.ensure`, if this Python can have it."""
    if sys.version_info >= FIRST_PYTHON_WITHOUT and not works(folder):
        return None, (
            f"MLServer {MLSERVER} is for Python below {'.'.join(map(str, FIRST_PYTHON_WITHOUT))}. "
            "Make one with an older Python and give its folder as --environment. "
            f"Received: Python {sys.version.split()[0]}"
        )
    python, reason = _ENVIRONMENT.ensure(folder)
    return python and pathlib.Path(python), reason
