"""The command line of `benchmarks.serving`."""

import argparse
import dataclasses
import pathlib
import re

from benchmarks import _serving_environment, _settings

FILES = ("serving.json", "serving.md")
PATHS = ("--export", "--out", "--environment")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to serve and to measure, and where to write.

    Attributes:
        exports: folders of SavedModels, or none to make them.
        size: name of the size of the models that are made.
        length: tokens of a row of these.
        outputs: names of the outputs to ask for, or `None` for all.
        clients: number of concurrent clients.
        requests: requests of each model and protocol.
        batch_size: most requests of a batch; 1 switches batching off.
        wait_ms: longest wait for a batch to fill, in milliseconds.
        http_port: port of REST, or `None` for a free one.
        grpc_port: port of gRPC, or `None` for a free one.
        hold: whether to serve until Ctrl-C, and measure nothing.
        environment: folder of the server's Python environment.
        out: folder to write.
    """

    exports: tuple
    size: str
    length: int
    outputs: tuple | None
    clients: int
    requests: int
    batch_size: int
    wait_ms: float
    http_port: int | None
    grpc_port: int | None
    hold: bool
    environment: pathlib.Path
    out: pathlib.Path


def parse(arguments=None, description=None):
    """Returns the `Settings` that a command line asks for.

    Raises:
        SystemExit: with code 2, after all mistakes were printed on standard error.
    """
    parser = _parser(description)
    given, unknown = parser.parse_known_args(arguments)
    problems = []

    def checked(function, *values):
        try:
            return function(*values)
        except ValueError as error:
            problems.append(str(error))

    if unknown:
        problems.append(f"There are no such options; --help lists them. Received: {unknown}")
    exports = given.export and checked(_settings._items, "--export", given.export)
    outputs = None if given.outputs == "all" else checked(_outputs, given.outputs)
    settings = Settings(
        exports=tuple(pathlib.Path(path).expanduser() for path in exports or ()),
        size=checked(_settings._size, given.size),
        length=checked(_settings._whole_number, "--length", given.length),
        outputs=outputs,
        clients=checked(_settings._whole_number, "--clients", given.clients),
        requests=checked(_settings._whole_number, "--requests", given.requests),
        batch_size=checked(_settings._whole_number, "--batch-size", given.batch_size),
        wait_ms=checked(_wait, given.wait_ms),
        http_port=given.http_port and checked(_port, "--http-port", given.http_port),
        grpc_port=given.grpc_port and checked(_port, "--grpc-port", given.grpc_port),
        hold=given.hold,
        environment=pathlib.Path(given.environment).expanduser().absolute(),
        out=checked(_settings._out, given.out),
    )
    problems += filter(None, [_serving_environment.problem(settings.environment)])
    if settings.length is not None and settings.length < 3:
        problems.append(
            "--length must be at least 3: one token between two special ones. "
            f"Received: {given.length!r}"
        )
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def shown(arguments):
    """Returns the arguments without what they tell of a machine: of paths the last part is left."""
    result, is_path = [], False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if is_path:
            argument = _last_parts(argument)
        elif equals and name in PATHS:
            argument = f"{name}={_last_parts(value)}"
        is_path = argument in PATHS
        result.append(argument)
    return result


def _last_parts(text):
    return ",".join(
        pathlib.Path(path).name if path.startswith(("/", "~", "..")) else path
        for path in text.split(",")
    )


def _outputs(text):
    return tuple(_settings._items("--outputs", text))


def _wait(text):
    if not re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text, re.ASCII) or float(text) == 0:
        raise ValueError(f"--wait-ms must be a number of milliseconds > 0. Received: {text!r}")
    return float(text)


def _port(name, text):
    if not re.fullmatch(r"\d{1,5}", text, re.ASCII) or not 1024 <= int(text) <= 65535:
        raise ValueError(f"{name} must be a port from 1024 to 65535. Received: {text!r}")
    return int(text)


def _parser(description):
    parser = argparse.ArgumentParser(
        prog="serving",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )

    def add(name, default, text, shown=None):
        # read as text, so that all mistakes can be told at once
        parser.add_argument(name, default=default, help=f"{text} Default: {shown or default}.")

    add("--export", None, "Folders of exported SavedModels, by commas.", "make two small ones")
    add("--size", "mini", "Size of the models that are made.")
    add("--length", "64", "Tokens of a row of these, >= 3.")
    add("--outputs", "pooled_output", "Outputs to ask for, by commas, or all.")
    add("--clients", "16", "Concurrent clients, > 0.")
    add("--requests", "1000", "Requests of each model and protocol, > 0.")
    add("--batch-size", "32", "Most requests of a batch; 1 switches batching off.")
    add("--wait-ms", "10", "Longest wait for a batch to fill, in milliseconds, > 0.")
    add("--http-port", None, "Port of REST on 127.0.0.1.", "a free one")
    add("--grpc-port", None, "Port of gRPC on 127.0.0.1.", "a free one")
    add("--out", "benchmarks/results/serving", f"Folder to write {' and '.join(FILES)} to.")
    add("--environment", str(_serving_environment.default_folder()), "Made if it is not there.")
    parser.add_argument("--hold", action="store_true", help="Serve until Ctrl-C; measure nothing.")
    return parser
