"""All pictures of a command line: made first, then written."""

import pathlib

from training.command.folder_lock import FolderLock
from training.command.report_files import replaced_file
from training.draw import sources
from training.draw.drawings import drawings_of
from training.draw.settings import LENGTH


def draw(settings):
    """Makes all pictures that are asked for, then writes them; returns the `Drawing`s.

    Raises:
        ValueError: if one of them cannot be drawn; nothing is written then.
    """
    drawings, folder = _made(settings), pathlib.Path(settings.out)
    with FolderLock(folder, "draw"):
        for drawing in drawings:
            replaced_file(folder / drawing.file, drawing.write)
    return drawings


def _made(settings):
    names = {name: sources.load_method(name) for name in settings.methods}
    files = {name for name in names if name.endswith(".py")}
    figures = {"channels": settings.channels, "mean_heads": settings.mean_heads}
    if settings.model is None:
        length, found = settings.length or LENGTH, []
        origin = f"at initialization ({settings.size}, seed {settings.seed})"
        for argument, name in names.items():
            with sources.blaming(files & {argument}):
                encoder = sources.initial_encoder(name, settings.size, length, settings.seed)
                found += drawings_of(encoder, length, origin, **figures)
        return found
    encoder = sources.saved_encoder(settings.model, list(names.values()))
    length = settings.length or min(LENGTH, encoder.max_sequence_length)
    origin = f"preset {'/'.join(pathlib.Path(settings.model).resolve().parts[-2:])}"
    text = None
    if settings.text:
        text = sources.tokenize(settings.model, sources.read_texts(settings.text), length)
    with sources.blaming(files):
        return drawings_of(encoder, length, origin, text, **figures)
