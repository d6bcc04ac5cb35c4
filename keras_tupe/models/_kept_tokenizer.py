"""Tokenizers of machines without `tensorflow_text`: saved with a model, but not used."""

import importlib.util
import pathlib

from keras_tupe.models.tupe_tokenizer import TupeTokenizer


def can_read_text():
    """Returns whether tokenizers can be used on this machine."""
    return importlib.util.find_spec("tensorflow_text") is not None


def kept_tokenizer(kind, contents, lowercase=None):
    """Returns a tokenizer of bytes of its `file_assets`, in order, that is saved and not used."""
    tokenizer = TupeTokenizer(kind=kind, lowercase=lowercase, name="tokenizer")

    def save_assets(folder):
        for name, content in zip(tokenizer.file_assets, contents, strict=True):
            pathlib.Path(folder, name).write_bytes(content)

    tokenizer.save_assets = save_assets
    return tokenizer
