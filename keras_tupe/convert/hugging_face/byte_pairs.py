"""Byte-level vocabularies of Hugging Face folders: GPT-2's, and RoBERTa's, which Longformer has."""

import dataclasses
import importlib.util
import pathlib
import shutil

from keras_tupe.convert.bert.wordpiece import IDS_ONLY, checked_size
from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.tokenizer_settings import (
    ADDED,
    CONFIG,
    SETTINGS,
    SPECIAL_MAP,
    WHOLE,
    WHOLE_TOKENS,
    kept_whole,
    model_of,
    part_of,
    read_files,
    texts_of,
    unlike,
)
from keras_tupe.convert.hugging_face.write import write_json
from keras_tupe.models import TupeTokenizer

VOCABULARY, MERGES = "vocab.json", "merges.txt"
_OURS = "vocabulary.json"
AS_TEXT = (
    "ours takes a special token that is written in the text for text, never for that token; "
    "bytes that are no UTF-8 are kept"
)


@dataclasses.dataclass(frozen=True)
class Frame:
    """The special tokens that a model's vocabulary must have.

    Attributes:
        classes: names of the tokenizers there; the first is what we write.
        special: dictionary: entry of the settings -> the token that it must be or be left out.
        start: the token that ours begins with, by which its kind of vocabulary is known.
    """

    classes: tuple
    special: dict
    start: str


_END = "<|endoftext|>"
GPT_2 = Frame(
    ("GPT2Tokenizer", "GPT2TokenizerFast"),
    dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), _END),
    _END,
)
ROBERTA = Frame(
    ("LongformerTokenizer", "LongformerTokenizerFast", "RobertaTokenizer", "RobertaTokenizerFast"),
    {
        "bos_token": "<s>",
        "cls_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    },
    "<s>",
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
    """Returns the tokenizer of a folder, if ours can do what it asks for.

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
    folder = pathlib.Path(folder)
    missing = [name for name in (VOCABULARY, MERGES) if not (folder / name).is_file()]
    if missing:
        return None, (f"there is no {' and no '.join(missing)}, so {IDS_ONLY}",)
    vocabulary = read_json(folder / VOCABULARY)
    different = _differences(read_files(folder), frame, vocabulary)
    if different:
        return None, (
            f"the tokenizer has {'; '.join(different)}, which ours cannot do, so {IDS_ONLY}",
        )
    checked_size(vocabulary, vocabulary_size, folder / VOCABULARY)
    if importlib.util.find_spec("tensorflow_text") is None:
        tokenizer = TupeTokenizer(kind="byte_pair")
        contents = {name: (folder / name).read_bytes() for name in (VOCABULARY, MERGES)}

        def save_assets(target):
            for name, ours in ((VOCABULARY, _OURS), (MERGES, MERGES)):
                pathlib.Path(target, ours).write_bytes(contents[name])

        tokenizer.save_assets = save_assets
        note = "the vocabulary is saved with the model, but text needs tensorflow_text, which is "
        return tokenizer, (note + "not installed here", AS_TEXT)
    try:
        tokenizer = TupeTokenizer(byte_pairs=str(folder / VOCABULARY))
    except (ValueError, TypeError) as error:
        return None, (f"ours cannot use {VOCABULARY} and {MERGES}: {error}; so {IDS_ONLY}",)
    if tokenizer.start_token != frame.start:
        return None, (
            f"the tokenizer's texts begin with {tokenizer.start_token!r} and not with "
            f"{frame.start!r}, so {IDS_ONLY}",
        )
    return tokenizer, (AS_TEXT,)


def tokenizer_problems(tokenizer, backbone, frame):
    """Returns why a tokenizer cannot be written: a list, empty for `None`."""
    if tokenizer is None:
        return []
    if tokenizer.kind != "byte_pair":
        return [
            f"a {tokenizer.kind} tokenizer, where byte pairs belong; set `model.preprocessor = "
            "None` to write the weights alone"
        ]
    if not tokenizer.has_vocabulary:
        return []
    found = []
    size = tokenizer.vocabulary_size()
    if size != backbone.vocabulary_size:
        found.append(f"a tokenizer of {size} pieces for {backbone.vocabulary_size} token vectors")
    if tokenizer.start_token != frame.start:
        found.append(
            f"a tokenizer whose texts begin with {tokenizer.start_token!r} and not with "
            f"{frame.start!r}"
        )
    return found


def write_byte_pairs(tokenizer, backbone, folder, frame):
    """Writes the files of a tokenizer into a folder, under Hugging Face's names."""
    tokenizer.save_assets(str(folder))
    shutil.move(folder / _OURS, folder / VOCABULARY)
    settings = {
        "tokenizer_class": frame.classes[0],
        "model_max_length": backbone.max_sequence_length,
        "add_prefix_space": False,
        **frame.special,
    }
    write_json(folder / SETTINGS, settings)


def _differences(files, frame, vocabulary):
    """Returns what the files ask for that our byte pairs do not do, a string for each file."""
    special = set(frame.special.values())
    found = {name: [] for name in files}
    for name in (CONFIG, SETTINGS):
        kind = files[name].get("tokenizer_class")
        if kind is not None and kind not in frame.classes:
            found[name].append(f"tokenizer_class={kind!r}")
    found[SETTINGS] += unlike(files[SETTINGS], _FIXED)
    for name in (SETTINGS, SPECIAL_MAP):
        for entry, value in files[name].items():
            texts = texts_of(value)
            if entry in frame.special and texts not in ([], [frame.special[entry]]):
                found[name].append(f"{entry}={texts[0]!r}")
            elif entry.endswith("_token") and entry not in frame.special and texts:
                is_text = isinstance(value, (str, dict))
                found[name] += kept_whole(entry, texts, special) if is_text else []
    for name in (SETTINGS, SPECIAL_MAP, WHOLE):
        for entry in WHOLE_TOKENS:
            found[name] += kept_whole(entry, texts_of(files[name].get(entry)), special)
    found[ADDED] += kept_whole("the tokens", list(files[ADDED]), special)
    found[WHOLE] += _of_whole(files[WHOLE], vocabulary)
    return [f"{name}: {', '.join(lines)}" for name, lines in found.items() if lines]


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
