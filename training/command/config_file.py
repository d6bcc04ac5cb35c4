"""Named settings: TOML files whose keys are the settings of a script."""

import pathlib

from training.command.kinds import nearest
from training.command.toml_file import read_settings, read_toml

FOLDER = pathlib.Path(__file__).parents[1] / "configs"


def names(command=None):
    """Returns the names of the files that come with the package, sorted.

    Args:
        command: name of the command that they must be for: each file's comment shows the command
            that reads it. Defaults to any.
    """
    paths = sorted(FOLDER.glob("*.toml"), key=lambda path: path.stem)
    return [path.stem for path in paths if command is None or _is_for(path, command)]


def _is_for(path, command):
    line = f"python -m training.{command} "
    return any(
        text.startswith("#") and line in text and f"--config {path.stem} " in text
        for text in path.read_text(encoding="utf-8").splitlines()
    )


def find(config):
    """Returns the path of a named settings file.

    Args:
        config: one of `names()`, or the path of a `.toml` file.

    Raises:
        ValueError: if there is no such file; the nearest name is suggested.
    """
    if config in names():
        return FOLDER / f"{config}.toml"
    path = pathlib.Path(config)
    if path.suffix == ".toml":
        if path.is_file():
            return path
        raise ValueError(f"--config names a file that does not exist. Received: {config!r}")
    raise ValueError(
        f"--config must be one of {names()} or the path of a .toml file; the nearest is "
        f"{nearest(config, names())!r}. Received: {config!r}"
    )


def read(config, fields):
    """Returns what a file of named settings says, and what is wrong with it.

    Args:
        config: as in `find`.
        fields: list of the dataclass fields that the file may set.

    Returns:
        Dictionary of values by name, with the right ones only, and a list with one sentence for
        each mistake.
    """
    try:
        path = find(config)
    except ValueError as error:
        return {}, [str(error)]
    try:
        entries = read_toml(path)
    except (OSError, ValueError) as error:
        return {}, [f"--config must be a readable TOML file: {error}. Received: {config!r}"]
    return read_settings(entries, {field.name: field for field in fields}, path.name)
