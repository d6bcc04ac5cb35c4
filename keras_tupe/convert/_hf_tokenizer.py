"""The vocabulary of a Hugging Face folder."""

import os
import pathlib

from keras_tupe.convert._hf_config import read_json
from keras_tupe.convert._wordpiece import checked_size, read_pieces, wordpiece_tokenizer

VOCABULARY, SETTINGS = "vocab.txt", "tokenizer_config.json"
_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
IDS_ONLY = "the model takes token ids only"


def hf_tokenizer(folder, vocabulary_size):
    """Returns the tokenizer of a folder, if ours can do what it asks for.

    Args:
        folder: path of the folder.
        vocabulary_size: token vectors of the model.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences for the report.

    Raises:
        ValueError: if the vocabulary has another size than the model, naming both.
    """
    folder = pathlib.Path(folder)
    path = folder / VOCABULARY
    if not path.is_file():
        return None, (f"there is no {VOCABULARY}, so {IDS_ONLY}",)
    pieces = read_pieces(path)
    checked_size(pieces, vocabulary_size, path)
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    lowercase = settings.get("do_lower_case", True)
    different = _differences(settings, lowercase)
    if different:
        return None, (f"{'; '.join(different)}, which ours cannot do, so {IDS_ONLY}",)
    tokenizer, notes = wordpiece_tokenizer(pieces, lowercase)
    if "do_lower_case" not in settings:
        notes = (*notes, f"text is lower-cased: no {SETTINGS} says otherwise")
    return tokenizer, notes


def _differences(settings, lowercase):
    """Returns what the settings ask for that our WordPiece does not do."""
    found = []
    if not isinstance(lowercase, bool):
        found.append(f"do_lower_case={lowercase!r}")
    if settings.get("strip_accents") not in (None, lowercase):
        found.append(f"do_lower_case={lowercase}, strip_accents={settings['strip_accents']}")
    for name in ("tokenize_chinese_chars", "do_basic_tokenize"):
        if settings.get(name, True) is not True:
            found.append(f"{name}={settings[name]!r}")
    for name, expected in _SPECIAL.items():
        token = settings.get(name, expected)
        token = token.get("content") if isinstance(token, dict) else token
        if token != expected:
            found.append(f"{name}={token!r}")
    return [f"the tokenizer has {os.fspath(SETTINGS)}: {', '.join(found)}"] if found else []
