"""Vocabularies of encoders: the ids that their own tokenizers give."""

import functools
import json
import shutil

import pytest
from golden_cases import GOLDEN

from keras_tupe.convert.hugging_face.architectures import CONVERTERS
from keras_tupe.convert.tokenizer_files import read_vocabulary, write_vocabulary
from keras_tupe.models import TupeBackbone

FOLDER = GOLDEN / "vocabularies"
KINDS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@functools.cache
def ids():
    """Returns the texts and the ids of each kind."""
    return json.loads((FOLDER / "ids.json").read_text(encoding="utf-8"))


def read(kind, folder=None, size=None):
    """Returns what is made of a golden vocabulary, or of a copy of it."""
    return read_vocabulary(folder or FOLDER / kind, size or ids()[kind]["size"], frame(kind))


def frame(kind):
    """Returns the special tokens of a kind."""
    return CONVERTERS[kind].frame


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_its_own_tokenizer(kind, tensorflow):
    from keras_tupe.tokenizers import pack_segments

    tokenizer, notes = read(kind)
    assert tokenizer is not None, notes
    known = ids()[kind]
    for text, found, expected in zip(
        ids()["texts"], tokenizer(ids()["texts"]), known["ids"], strict=True
    ):
        assert list(found) == expected, text
    op = tokenizer.op
    masked = op.tokenize_with_masks([f"the cat   {tokenizer.mask_token} on"])
    assert masked.to_list() == [known["mask"]]
    pair = tuple(op.tokenize([text]) for text in ids()["pair"])
    row, mask, _ = pack_segments(op, pair, 64)
    assert row.numpy()[0][: int(mask.numpy().sum())].tolist() == known["pair"]
    assert op.detokenize([known["ids"][0]]).numpy()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_comes_back(kind, tensorflow, tmp_path):
    tokenizer, _ = read(kind)
    size = ids()[kind]["size"]
    backbone = TupeBackbone(size, 1, 1, 2, 2, "absolute", max_sequence_length=9)
    write_vocabulary(tokenizer, backbone, tmp_path, frame(kind))
    again, notes = read(kind, tmp_path)
    assert again is not None, notes
    assert again.get_vocabulary() == tokenizer.get_vocabulary()
    assert again.lowercase == tokenizer.lowercase
    assert again(ids()["texts"]) == tokenizer(ids()["texts"])


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("albert", {"keep_accents": True}, "tokenizer_config.json: keep_accents=True"),
        ("albert", {"remove_space": False}, "remove_space=False"),
        ("albert", {"do_lower_case": "yes"}, "do_lower_case='yes'"),
        ("albert", {"sp_model_kwargs": {"enable_sampling": True}}, "sp_model_kwargs={'enable"),
        ("albert", {"mask_token": "<mask>"}, "mask_token='<mask>'"),
        ("deberta", {"add_prefix_space": True}, "add_prefix_space=True"),
        ("deberta", {"tokenizer_class": "GPT2Tokenizer"}, "tokenizer_class='GPT2Tokenizer'"),
        ("electra", {"strip_accents": False}, "strip_accents=False"),
        ("mpnet", {"unk_token": "<unk>"}, "unk_token='<unk>'"),
        ("mpnet", {"tokenizer_class": "BertTokenizer"}, "tokenizer_class='BertTokenizer'"),
    ],
)
def test_what_ours_cannot_do_leaves_ids_and_a_note(kind, settings, expected, tmp_path):
    folder = shutil.copytree(FOLDER / kind, tmp_path / kind)
    content = json.loads((folder / "tokenizer_config.json").read_text()) | settings
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    tokenizer, (note,) = read(kind, folder)
    assert tokenizer is None
    assert expected in note
    assert note.endswith("which ours cannot do, so the model takes token ids only")


def test_the_unknown_token_of_mpnets_first_pieces_may_be_named(tensorflow, tmp_path):
    """Its vocabulary has `<unk>` beside `[UNK]`, which is the one that is used."""
    folder = shutil.copytree(FOLDER / "mpnet", tmp_path / "mpnet")
    content = json.loads((folder / "tokenizer_config.json").read_text())
    content["added_tokens_decoder"]["3"] = {"content": "<unk>", "special": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    tokenizer, _ = read("mpnet", folder)
    assert tokenizer.unk_token == "[UNK]"


def test_words_of_chinese_leave_ids_and_a_note(tensorflow, tmp_path):
    """RoFormer's own tokenizer finds them by a segmenter."""
    folder = shutil.copytree(FOLDER / "roformer", tmp_path / "roformer")
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("\u65e5\u672c\n")
    size = ids()["roformer"]["size"] + 1
    tokenizer, (note,) = read("roformer", folder, size)
    assert tokenizer is None
    assert "vocab.txt: pieces of several Chinese characters" in note
    _, notes = read("roformer")
    assert "Chinese segmenter" in notes[-1]


@pytest.mark.parametrize("kind", ["albert", "mpnet"])
def test_a_vocabulary_of_another_size_is_refused(kind, tensorflow):
    with pytest.raises(ValueError, match="token vectors, which is 7"):
        read(kind, size=7)


def test_a_damaged_sentencepiece_model_leaves_ids_and_a_note(tensorflow, tmp_path):
    folder = shutil.copytree(FOLDER / "albert", tmp_path / "albert")
    (folder / "spiece.model").write_bytes(b"no model")
    tokenizer, (note,) = read("albert", folder)
    assert tokenizer is None
    assert "ours cannot use spiece.model: This is not a SentencePiece model" in note


def test_a_comma_behind_a_digit_is_a_piece_of_its_own(tensorflow):
    tokenizer, _ = read("albert")
    pieces = tokenizer.get_vocabulary()
    joined = next(piece for piece in pieces if piece[-1] == "," and piece[-2:-1].isdigit())
    (found,) = tokenizer([f"in {joined.lstrip(chr(0x2581))}"])
    assert [pieces[index] for index in found][-1] == ","


def test_offsets_of_albert_are_in_the_text_itself(tensorflow):
    text = "``na\u00efve'' caf\u00e9s"
    tokenizer, _ = read("albert")
    ids_of_text, starts, ends = tokenizer.op.tokenize_with_offsets([text])
    assert ids_of_text.to_list() == [list(tokenizer([text])[0])]
    content = text.encode()
    for start, end in zip(starts.to_list()[0], ends.to_list()[0], strict=True):
        content[start:end].decode()  # whole characters
    assert ends.to_list()[0][-1] == len(content)
