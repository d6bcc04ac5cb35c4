"""Whether rows were cut with the vocabulary of a preset."""

import pathlib

_ASSETS = pathlib.Path("assets", "tokenizer")


def check_same_vocabulary(preset, size, vocabulary):
    """Refuses rows of another vocabulary than the preset's.

    Args:
        preset: folder of the preset.
        size: pieces of its model.
        vocabulary: the `PreparedVocabulary` of the rows.

    Raises:
        ValueError: if it is another one.
    """
    files = sorted((pathlib.Path(preset) / _ASSETS).glob("*"))
    ours = vocabulary.path.read_bytes()
    if size != vocabulary.size or not any(_same(file, ours) for file in files):
        raise ValueError(
            "The rows must have the vocabulary of the preset. Prepare them with "
            f"`--vocabulary` and the preset's file in {_ASSETS}. Received: a preset of {size} "
            f"pieces, rows of {vocabulary.size} other pieces; preset={preset!r}"
        )


def _same(file, content):
    return file.read_bytes().rstrip(b"\n") == content.rstrip(b"\n")
