"""Byte-level vocabularies of Hugging Face folders: GPT-2's, RoBERTa's and DeBERTa's."""

import pathlib

from keras_tupe.convert.bert.wordpiece import IDS_ONLY, ONLY_SAVED, checked_size
from keras_tupe.convert.hugging_face.files import read_json
from keras_tupe.convert.hugging_face.tokenizer_settings import (
    SETTINGS,
    WHOLE,
    model_of,
    other_frame,
    part_of,
    read_files,
    refusal,
    said,
    unlike,
)
from keras_tupe.models import TupeTokenizer
from keras_tupe.models._kept_tokenizer import can_read_text, kept_tokenizer

VOCABULARY, MERGES = "vocab.json", "merges.txt"
AS_TEXT = (
    "ours takes a special token that is written in the text for text, never for that token; "
    "bytes that are no UTF-8 are kept"
)
# What must be as here, or left out.
_FIXED = {"add_prefix_space": False, "auto_map": None}
_FIXED_MODEL = {
    "type": "BPE",
    "dropout": None,
    "byte_fallback": False,
    "ignore_merges": False,
    "fuse_unk": False,
}


def hf_byte_pairs(folder, vocabulary_size, frame):
    """Returns the tokenizer of a folder and notes, see `read_vocabulary`."""
    folder = pathlib.Path(folder)
    missing = [name for name in (VOCABULARY, MERGES) if not (folder / name).is_file()]
    if missing:
        return None, (f"there is no {' and no '.join(missing)}, so {IDS_ONLY}",)
    vocabulary = read_json(folder / VOCABULARY)
    different = _differences(read_files(folder), frame, vocabulary)
    if different:
        return None, refusal(different)
    mask = frame.special.get("mask_token")
    if not (frame.spare_mask and vocabulary.get(mask) == vocabulary_size == len(vocabulary) - 1):
        checked_size(vocabulary, vocabulary_size, folder / VOCABULARY)
    if not can_read_text():
        contents = [(folder / name).read_bytes() for name in (VOCABULARY, MERGES)]
        return kept_tokenizer("byte_pair", contents), (ONLY_SAVED, AS_TEXT)
    try:
        tokenizer = TupeTokenizer(byte_pairs=str(folder / VOCABULARY))
    except (ValueError, TypeError) as error:
        return None, (f"ours cannot use {VOCABULARY} and {MERGES}: {error}; so {IDS_ONLY}",)
    return tokenizer, (AS_TEXT,)


def _differences(files, frame, vocabulary):
    """Returns what the files ask for that our byte pairs do not do, a string for each file."""
    found = other_frame(files, frame)
    found[SETTINGS] += unlike(files[SETTINGS], _FIXED)
    found[WHOLE] += _of_whole(files[WHOLE], vocabulary)
    return said(found)


def _of_whole(whole, vocabulary):
    """Returns the differences in the file of the `tokenizers` library, entry by entry."""
    found = unlike(model_of(whole), _FIXED_MODEL)
    if part_of(whole, "normalizer"):
        found.append(f"normalizer of type {part_of(whole, 'normalizer').get('type')!r}")
    cutter = part_of(whole, "pre_tokenizer")
    if "pre_tokenizer" in whole and cutter.get("type") != "ByteLevel":
        found.append(f"pre_tokenizer of type {cutter.get('type')!r}")
    found += unlike(cutter, {"add_prefix_space": False, "use_regex": True})
    pieces = model_of(whole).get("vocab")
    # special tokens need not be among them
    if pieces is not None and any(vocabulary.get(piece) != pieces[piece] for piece in pieces):
        found.append(f"other pieces than {VOCABULARY}")
    return found
