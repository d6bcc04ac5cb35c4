"""The vocabulary of a Hugging Face folder, of any kind: read, checked and written."""

import shutil

from keras_tupe.convert.bert.wordpiece import IDS_ONLY
from keras_tupe.convert.hugging_face.byte_pairs import hf_byte_pairs
from keras_tupe.convert.hugging_face.files import write_json
from keras_tupe.convert.hugging_face.sentencepiece import hf_sentencepiece
from keras_tupe.convert.hugging_face.tokenizer import hf_tokenizer
from keras_tupe.convert.hugging_face.tokenizer_settings import SETTINGS

_READERS = {
    "wordpiece": hf_tokenizer,
    "byte_pair": hf_byte_pairs,
    "sentencepiece": hf_sentencepiece,
}
# What we call the kinds.
_KINDS = {
    "wordpiece": "WordPiece belongs",
    "byte_pair": "byte pairs belong",
    "sentencepiece": "SentencePiece belongs",
}
# Their name for the first file.
_FILES = {
    "wordpiece": "vocab.txt",
    "byte_pair": "vocab.json",
    "sentencepiece": "spiece.model",
}


def read_vocabulary(folder, vocabulary_size, frame):
    """Returns the tokenizer of a folder, if ours can do what it asks for, and notes.

    Args:
        folder: path of the folder.
        vocabulary_size: token vectors of the model.
        frame: the `Frame` of the model.

    Returns:
        `(tokenizer, notes)`: a `TupeTokenizer` or `None`, and sentences for the report.
        Without TensorFlow the tokenizer can be saved but not used.

    Raises:
        ValueError: if the vocabulary has another size than the model, naming both; if a file is
            damaged.
    """
    tokenizer, notes = _READERS[frame.kind](folder, vocabulary_size, frame)
    start = getattr(tokenizer, "start_token", None)
    if start not in (None, frame.start):
        return None, (
            f"the tokenizer's texts begin with {start!r} and not with {frame.start!r}, so "
            f"{IDS_ONLY}",
        )
    return tokenizer, notes


def vocabulary_problems(tokenizer, backbone, frame):
    """Returns why a tokenizer cannot be written: a list, empty for `None`."""
    if tokenizer is None:
        return []
    if tokenizer.kind != frame.kind:
        return [
            f"a {tokenizer.kind} tokenizer, where {_KINDS[frame.kind]}; set `model.preprocessor = "
            "None` to write the weights alone"
        ]
    if not tokenizer.has_vocabulary:
        return []
    found = []
    size = tokenizer.vocabulary_size()
    is_spare = frame.spare_mask and tokenizer.mask_token_id == backbone.vocabulary_size == size - 1
    if size != backbone.vocabulary_size and not is_spare:
        found.append(f"a tokenizer of {size} pieces for {backbone.vocabulary_size} token vectors")
    if tokenizer.start_token != frame.start:
        found.append(
            f"a tokenizer whose texts begin with {tokenizer.start_token!r} and not with "
            f"{frame.start!r}"
        )
    return found


def write_vocabulary(tokenizer, backbone, folder, frame):
    """Writes the files of a tokenizer into a folder, under Hugging Face's names."""
    tokenizer.save_assets(str(folder))
    shutil.move(folder / tokenizer.file_assets[0], folder / _FILES[frame.kind])
    settings = {
        "tokenizer_class": frame.classes[0],
        "model_max_length": backbone.max_sequence_length,
        **(
            {"add_prefix_space": False}
            if frame.kind == "byte_pair"
            else {"do_lower_case": tokenizer.lowercase}
        ),
        **frame.special,
    }
    write_json(folder / SETTINGS, settings)
