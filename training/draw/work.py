"""All pictures of a command line: made first, then written."""

import pathlib

from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file
from training.draw import sources
from training.draw.drawings import drawings_of
from training.draw.figures import drawing_of_channels, drawing_of_mean_heads
from training.draw.settings import LENGTH


def draw(settings):
    """Makes and writes the pictures; returns the `Drawing`s.

    Raises:
        ValueError: if one of them cannot be drawn; nothing is written then.
    """
    drawings = collect(settings)
    write(drawings, settings.out)
    return drawings


def collect(settings):
    """Returns all the pictures that the settings ask for; writes nothing.

    Raises:
        ValueError: if one of them cannot be drawn.
    """
    names = {name: sources.load_method(name) for name in settings.methods}
    files = {name for name in names if name.endswith(".py")}
    if settings.model is None:
        length = settings.length or LENGTH
        origin = f"at initialization ({settings.size}, seed {settings.seed})"
        found = []
        for argument, name in names.items():
            with sources.blaming(files & {argument}):
                encoder = sources.initial_encoder(name, settings.size, length, settings.seed)
                found += _drawings(settings, encoder, length, origin)
        return found
    encoder = sources.saved_encoder(settings.model, list(names.values()))
    length = settings.length or min(LENGTH, encoder.max_sequence_length)
    origin = f"preset {'/'.join(pathlib.Path(settings.model).resolve().parts[-2:])}"
    text = None
    if settings.text:
        texts = sources.read_texts(settings.text)
        text = sources.tokenize(settings.model, texts, length)
    with sources.blaming(files):
        return _drawings(settings, encoder, length, origin, text)


def _drawings(settings, encoder, length, origin, text=None):
    found = drawings_of(encoder, length, origin, text)
    if settings.channels:
        found.append(drawing_of_channels(encoder, origin))
    if settings.mean_heads:
        found.append(drawing_of_mean_heads(encoder, origin, *text))
    return found


def write(drawings, folder):
    """Writes the pictures, each complete or not at all."""
    folder = pathlib.Path(folder)
    with FolderLock(folder, "draw"):
        for drawing in drawings:
            replaced_file(folder / drawing.file, drawing.write)
