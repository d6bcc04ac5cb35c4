"""SentencePiece vocabularies of Hugging Face folders: ALBERT's."""

import pathlib

from keras_tupe.convert.bert.wordpiece import IDS_ONLY, ONLY_SAVED, checked_size
from keras_tupe.convert.hugging_face.tokenizer_settings import (
    SETTINGS,
    WHOLE,
    model_of,
    other_frame,
    read_files,
    refusal,
    said,
    unlike,
)
from keras_tupe.models import TupeTokenizer
from keras_tupe.models._kept_tokenizer import can_read_text, kept_tokenizer

VOCABULARY = "spiece.model"
OTHER_CUTS = (
    "ours folds case where ALBERT's own tokenizer lower-cases, so that a sharp s is ss and a final "
    "sigma one like any other, and takes a special token in the text for text"
)
# What must be as here, or left out.
_FIXED = {"keep_accents": False, "remove_space": True, "auto_map": None}


def hf_sentencepiece(folder, vocabulary_size, frame):
    """Returns the tokenizer of a folder and notes, see `read_vocabulary`."""
    path = pathlib.Path(folder, VOCABULARY)
    if not path.is_file():
        return None, (f"there is no {VOCABULARY}, so {IDS_ONLY}",)
    files = read_files(folder)
    lowercase = files[SETTINGS].get("do_lower_case", True)
    found = other_frame(files, frame)
    found[SETTINGS] += unlike(files[SETTINGS], _FIXED)
    if not isinstance(lowercase, bool):
        found[SETTINGS].append(f"do_lower_case={lowercase!r}")
    if files[SETTINGS].get("sp_model_kwargs"):
        found[SETTINGS].append(f"sp_model_kwargs={files[SETTINGS]['sp_model_kwargs']!r}")
    found[WHOLE] += unlike(model_of(files[WHOLE]), {"type": "Unigram", "byte_fallback": False})
    tokenizer, notes = None, ()
    if not said(found):
        tokenizer, notes = _tokenizer(path, lowercase)
    if tokenizer is not None and tokenizer.has_vocabulary:
        pieces = tokenizer.get_vocabulary()
        checked_size(pieces, vocabulary_size, path)
        scored = model_of(files[WHOLE]).get("vocab")
        if scored is not None and [str(piece) for piece, *_ in scored] != pieces:
            found[WHOLE].append(f"other pieces than {VOCABULARY}")
    if said(found):
        return None, refusal(said(found))
    return tokenizer, notes


def _tokenizer(path, lowercase):
    content = path.read_bytes()
    if not can_read_text():
        return kept_tokenizer("sentencepiece", [content], lowercase), (ONLY_SAVED, OTHER_CUTS)
    try:
        return TupeTokenizer(sentencepiece=content, lowercase=lowercase), (OTHER_CUTS,)
    except ValueError as error:
        return None, (f"ours cannot use {VOCABULARY}: {error}; so {IDS_ONLY}",)
