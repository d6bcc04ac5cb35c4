"""SentencePiece vocabularies of Hugging Face folders: ALBERT's."""

import importlib.util
import pathlib

from keras_tupe.convert.bert.wordpiece import IDS_ONLY, checked_size
from keras_tupe.convert.hugging_face.tokenizer_settings import (
    SETTINGS,
    WHOLE,
    model_of,
    other_frame,
    read_files,
    said,
    unlike,
)
from keras_tupe.models import TupeTokenizer

VOCABULARY = "spiece.model"
_OURS = "vocabulary.spm"
OTHER_CUTS = (
    "ours folds case where ALBERT's own tokenizer lower-cases, so that a sharp s is ss and a final "
    "sigma one like any other, and takes a special token in the text for text"
)
# What must be as here, or left out.
_FIXED = {"keep_accents": False, "remove_space": True, "auto_map": None}


def hf_sentencepiece(folder, vocabulary_size, frame):
    """Returns the SentencePiece tokenizer of a folder, if ours can do what it asks for.

    Without TensorFlow the tokenizer can be saved but not used.

    Args:
        folder: path of the folder.
        vocabulary_size: token vectors of the model.
        frame: the `Frame` of the model.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences for the report.

    Raises:
        ValueError: if the vocabulary has another size than the model, naming both; if a file is
            damaged.
    """
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
        return None, (
            f"the tokenizer has {'; '.join(said(found))}, which ours cannot do, so {IDS_ONLY}",
        )
    return tokenizer, notes


def _tokenizer(path, lowercase):
    content = path.read_bytes()
    if importlib.util.find_spec("tensorflow_text") is None:
        tokenizer = TupeTokenizer(kind="sentencepiece", lowercase=lowercase)
        tokenizer.save_assets = lambda folder: pathlib.Path(folder, _OURS).write_bytes(content)
        note = "the vocabulary is saved with the model, but text needs tensorflow_text, which is "
        return tokenizer, (note + "not installed here", OTHER_CUTS)
    try:
        return TupeTokenizer(sentencepiece=content, lowercase=lowercase), (OTHER_CUTS,)
    except ValueError as error:
        return None, (f"ours cannot use {VOCABULARY}: {error}; so {IDS_ONLY}",)
