"""Prints the table of exported models, made from their cards.

python -m training.saved_models
python -m training.saved_models --update saved_models/README.md
"""

import dataclasses
import hashlib
import pathlib
import urllib.parse

from training.command.report_files import replaced_text
from training.command.settings import parse, setting
from training.command.shell import sentences
from training.command.tables import replaced, table
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe._json_file import read_json_object

COMMAND = "training.saved_models --update saved_models/README.md"
HEADER = [
    "name",
    "method",
    "encoder",
    "vocabulary",
    "rows",
    "size",
    "measured",
    "commit",
    "made by",
]


def model_table(folder):
    """Returns the Markdown table of all exports in a folder that have a card.

    Args:
        folder: `pathlib.Path` with one folder per model.

    Raises:
        ValueError: if there is none, a card cannot be read, or a file is not the card's.
    """
    cards = sorted(card for card in folder.glob("*/card.json") if card.parent.name[0] != ".")
    if not cards:
        raise ValueError(
            "The folder must hold exports with their card.json, as `training.export` makes them. "
            f"Received: {str(folder)!r}"
        )
    return table(HEADER, [_row(card) for card in cards])


def _row(path):
    try:
        card = read_json_object(path)
        config, trained = card["config"], card.get("trained_with", {})
        commands = [trained.get("command"), card["command"]]
        name = path.parent.name
        return [
            f"[{name}]({urllib.parse.quote(name)})".replace("|", "\\|"),
            f"`{config['position']}`",
            f"{config['num_layers']} layers, hidden size {config['hidden_dim']}, "
            f"{config['num_heads']} heads",
            f"{config['vocabulary_size']:,}",
            f"{card.get('length', config['max_sequence_length'])} tokens",
            f"{checked_size(path.parent, card['sha256']) / 1e6:.1f} MB",
            _metrics(card["metrics"]),
            ", ".join(map(_short, (trained.get("commit"), card["commit"]))),
            ", then ".join(f"`{command}`" for command in commands if command),
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"The card cannot be used ({type(error).__name__}: {error}). Export the model again. "
            f"Received: {str(path)!r}"
        ) from error


def checked_size(folder, hashes):
    """Returns the bytes of all files, which must be those of the card."""
    size = 0
    for name, expected in hashes.items():
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is not a file of the export")
        content = (folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise ValueError(f"{name} has changed since")
        size += len(content)
    return size


def _short(commit):
    """Returns a commit in seven digits, with a + for changes that were not committed."""
    return f"`{commit[:7]}{'+' if commit.endswith('-dirty') else ''}`" if commit else "-"


def _metrics(metrics):
    """Returns the numbers and words among the metrics; curves have no place in a table."""
    shown = {name: value for name, value in metrics.items() if not isinstance(value, list)}
    return ", ".join(_metric(*item) for item in shown.items()) or "-"


def _metric(name, value):
    if isinstance(value, str):
        return f"{name.replace('_', ' ')} {value}"
    number = f"{value:,.0f}" if float(value).is_integer() else f"{value:.3f}"
    return f"{name.replace('_', ' ')} {number}"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the table."""

    update: str | None = setting(None, "File whose table is made anew.")
    folder: str | None = setting(
        None, "Folder of the models. Default: that of --update, or saved_models."
    )


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "saved_models")
    beside = pathlib.Path(settings.update).parent if settings.update else "saved_models"
    with sentences("saved_models", "Nothing was written."):
        made = model_table(pathlib.Path(settings.folder or beside))
        if settings.update is None:
            print(made)
            return
        path = pathlib.Path(settings.update)
        replaced_text(path, replaced(path.read_text(encoding="utf-8"), COMMAND, made))


if __name__ == "__main__":
    main()
