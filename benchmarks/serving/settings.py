"""The settings of `benchmarks.serving`."""

import dataclasses
import math
import pathlib

from benchmarks.harness.checks import SIZES, Lists
from benchmarks.harness.environments import SERVER, folder_of
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields

PATHS = ("--export", "--out", "--environment")
_PORT = ("a port from 1024 to 65535", lambda value: 1024 <= value <= 65535)
_WAIT = ("a number of milliseconds above 0", lambda value: 0 < value < math.inf)
_LENGTH = ("at least 3: one token between two special ones", lambda value: value >= 3)


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.serving`."""

    export: tuple = setting((), "Folders of exported SavedModels. Default: make two small ones.")
    size: str = setting("mini", "Size of the models that are made.", one_of=SIZES)
    length: int = setting(64, "Tokens of a row of these.", rule=_LENGTH)
    outputs: tuple = setting(("pooled_output",), "Outputs to ask for, or all.")
    clients: int = setting(16, "Concurrent clients.", rule=COUNT)
    requests: int = setting(1000, "Requests of each model and protocol.", rule=COUNT)
    batch_size: int = setting(32, "Most requests of a batch; 1 switches batching off.", rule=COUNT)
    wait_ms: float = setting(10.0, "Longest wait for a batch to fill, in milliseconds.", rule=_WAIT)
    http_port: int | None = setting(
        None, "Port of REST on 127.0.0.1. Default: a free one.", rule=_PORT
    )
    grpc_port: int | None = setting(
        None, "Port of gRPC on 127.0.0.1. Default: a free one.", rule=_PORT
    )
    out: str = setting(
        "benchmarks/results/serving", "Folder to write serving.json and serving.md to."
    )
    environment: str = setting(str(SERVER.default_folder()), "Made if it is not there.")
    hold: bool = setting(False, "Serve until Ctrl-C; measure nothing.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        return [
            *wrong_fields(self).values(),
            *no_folder(self.out),
            *filter(None, [SERVER.problem(folder_of(self.environment))]),
        ]

    def folders(self):
        """Returns the folders of the exports; none: they are to be made."""
        return [pathlib.Path(path).expanduser() for path in self.export]

    def wanted(self):
        """Returns the names of the outputs to ask for, or `None` for all."""
        return None if self.outputs == ("all",) else self.outputs


def shown(arguments):
    """Returns the arguments without what they tell of a machine: of paths the last part is left."""
    result, is_path = [], False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            is_path = argument in PATHS
        elif is_path:
            argument = _last_parts(argument)
        if equals and name in PATHS:
            argument = f"{name}={_last_parts(value)}"
        result.append(argument)
    return result


def _last_parts(text):
    return ",".join(
        pathlib.Path(path).name if path.startswith(("/", "~", "..")) else path
        for path in text.split(",")
    )
