"""The vocabulary of a Hugging Face folder."""

import pathlib

from keras_tupe.check import is_integer
from keras_tupe.convert.bert.wordpiece import (
    IDS_ONLY,
    checked_size,
    read_pieces,
    wordpiece_tokenizer,
)
from keras_tupe.convert.hugging_face.frames import BERT
from keras_tupe.convert.hugging_face.tokenizer_settings import (
    VOCABULARY,
    WHOLE,
    as_written,
    differences,
    lowercase_of,
    model_of,
    read_files,
    refusal,
)

OTHER_CUTS = (
    "ours cuts a few characters otherwise than BERT's own tokenizer: ligatures, full-width "
    "letters, superscripts and signs like the ellipsis as their plain letters, a lower-cased "
    "sharp s as ss, zero-width and control characters as the end of a word"
)
OTHER_WORDS = (
    "this model's own tokenizer cuts words by a Chinese segmenter; ours, as BERT's, which differs "
    "beside letters that are neither Chinese nor a to z"
)


def hf_tokenizer(folder, vocabulary_size, frame=BERT):
    """Returns the WordPiece tokenizer of a folder, if ours can do what it asks for.

    The pieces are those of `vocab.txt`; from transformers 5 on they are in `tokenizer.json` alone.

    Args:
        folder: path of the folder.
        vocabulary_size: token vectors of the model.
        frame: the `Frame` of the model. Defaults to BERT's.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences for the report.

    Raises:
        ValueError: if the vocabulary has another size than the model, naming both; if a file is
            damaged.
    """
    folder = pathlib.Path(folder)
    path, files = folder / VOCABULARY, read_files(folder)
    if not path.is_file():
        path = folder / WHOLE
        if not files[WHOLE]:
            return None, (f"there is no {VOCABULARY} and no {WHOLE}, so {IDS_ONLY}",)
        files[WHOLE] = as_written(files[WHOLE])
    lowercase, notes = lowercase_of(files)
    # first, since the vocabulary of another kind of tokenizer need not fit the model
    different = differences(files, frame, lowercase)
    if not different:
        pieces = _pieces_of(files[WHOLE]) if path.name == WHOLE else read_pieces(path)
        checked_size(pieces, vocabulary_size, path)
        different = differences(files, frame, lowercase, pieces)
        if frame.cuts_words and any(map(_is_word, pieces)):
            different = [*different, f"{path.name}: pieces of several Chinese characters"]
    if different:
        return None, refusal(different)
    special = tuple(dict.fromkeys(frame.special.values()))
    tokenizer, more = wordpiece_tokenizer(pieces, lowercase, path, special)
    if tokenizer is None:
        return None, more
    cuts = (OTHER_CUTS, OTHER_WORDS) if frame.cuts_words else (OTHER_CUTS,)
    return tokenizer, (*more, *notes, *cuts)


def _pieces_of(whole):
    """Returns the pieces of a `tokenizer.json` in the order of their ids."""
    vocabulary = model_of(whole).get("vocab")
    if not isinstance(vocabulary, dict) or sorted(
        id_ for id_ in vocabulary.values() if is_integer(id_)
    ) != list(range(len(vocabulary))):
        raise ValueError(
            f"The pieces in {WHOLE} must be a dictionary from each piece to its id, from 0 on, "
            f"without gaps. Received: a `vocab` of {type(vocabulary).__name__}"
        )
    return sorted(vocabulary, key=vocabulary.get)


def _is_word(piece):
    return len(piece) > 1 and all("\u4e00" <= character <= "\u9fff" for character in piece)
