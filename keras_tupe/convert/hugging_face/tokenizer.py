"""The vocabulary of a Hugging Face folder."""

import pathlib

from keras_tupe.convert.bert.wordpiece import (
    IDS_ONLY,
    checked_size,
    read_pieces,
    wordpiece_tokenizer,
)
from keras_tupe.convert.hugging_face.tokenizer_settings import (
    VOCABULARY,
    differences,
    lowercase_of,
    read_files,
)

OTHER_CUTS = (
    "ours cuts a few characters otherwise than BERT's own tokenizer: ligatures, full-width "
    "letters, superscripts and signs like the ellipsis as their plain letters, a lower-cased "
    "sharp s as ss, zero-width and control characters as the end of a word"
)


def hf_tokenizer(folder, vocabulary_size):
    """Returns the tokenizer of a folder, if ours can do what it asks for.

    Args:
        folder: path of the folder.
        vocabulary_size: token vectors of the model.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences for the report.

    Raises:
        ValueError: if the vocabulary has another size than the model, naming both; if a file is
            damaged.
    """
    folder = pathlib.Path(folder)
    path = folder / VOCABULARY
    if not path.is_file():
        return None, (f"there is no {VOCABULARY}, so {IDS_ONLY}",)
    files = read_files(folder)
    lowercase, notes = lowercase_of(files)
    # first, since the vocabulary of another kind of tokenizer need not fit the model
    different = differences(files, lowercase)
    if not different:
        pieces = read_pieces(path)
        checked_size(pieces, vocabulary_size, path)
        different = differences(files, lowercase, pieces)
    if different:
        return None, (
            f"the tokenizer has {'; '.join(different)}, which ours cannot do, so {IDS_ONLY}",
        )
    tokenizer, more = wordpiece_tokenizer(pieces, lowercase, path)
    return tokenizer, more if tokenizer is None else (*more, *notes, OTHER_CUTS)
