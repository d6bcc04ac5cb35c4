"""Vocabularies of encoders: the ids of their own tokenizers, from files of both generations."""

import functools
import json
import shutil

import pytest
from golden_cases import GOLDEN

from keras_tupe.convert import tokenizer_files
from keras_tupe.convert.tokenizer_files import Frame, read_vocabulary, write_vocabulary
from keras_tupe.models import TupeBackbone, TupeTokenizer

FOLDER = GOLDEN / "vocabularies"
KINDS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
ALONE = sorted((GOLDEN / "tokenizers").glob("*/[A-Z]*"))
FRAMES = {
    name.lower().replace("_", ""): frame
    for name, frame in vars(tokenizer_files).items()
    if isinstance(frame, Frame)
}


@functools.cache
def ids(folder=FOLDER):
    return json.loads((folder / "ids.json").read_text(encoding="utf-8"))


def read(kind, folder=None, size=None):
    """Returns what is made of a golden vocabulary, or of a copy of it."""
    return read_vocabulary(folder or FOLDER / kind, size or ids()[kind]["size"], FRAMES[kind])


def size_of(folder):
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    return len(content["model"]["vocab"])


def changed(folder, target, part, changes, name="tokenizer.json"):
    """Returns a copy of a folder with other entries in a part of a file; `None`: in the file."""
    folder = shutil.copytree(folder, target)
    content = json.loads((folder / name).read_text("utf-8"))
    (content if part is None else content[part]).update(changes)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


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


@pytest.mark.parametrize("folder", ALONE, ids=lambda folder: "/".join(folder.parts[-2:]))
def test_tokenizer_json_alone_gives_the_ids_of_its_generation_and_comes_back(
    folder, tensorflow, tmp_path
):
    tokenizers = pytest.importorskip("tokenizers")
    frame, known = FRAMES[folder.name.lower()], ids(folder.parent)
    tokenizer, notes = read_vocabulary(folder, size_of(folder), frame)
    assert tokenizer is not None, notes
    is_other = folder.parts[-2:] == ("5", "Deberta")  # two [SEP] there
    assert any("texts of a pair" in note for note in notes) == is_other
    pieces = tokenizer.get_vocabulary()
    for text, found, expected in zip(
        known["texts"], tokenizer(known["texts"]), known[folder.name], strict=True
    ):
        said = any("a comma from the digit" in note for note in notes)
        if said and "9," in text:  # transformers 5 joins them
            assert "".join(pieces[i] for i in found) == "".join(pieces[i] for i in expected)
        else:
            assert list(found) == expected, text
    backbone = TupeBackbone(size_of(folder), 1, 1, 2, 2, "absolute", max_sequence_length=9)
    write_vocabulary(tokenizer, backbone, tmp_path, frame)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] == frame.classes[0]
    for text, found in zip(known["texts"], tokenizer(known["texts"]), strict=True):
        assert theirs.encode(text, add_special_tokens=False).ids == list(found), text
    around = theirs.encode("a", "b").tokens
    assert [token for token in around if token in frame.special.values()] == (
        [*frame.around[:1], *frame.between, *frame.around[1:]] if frame.around else []
    )
    for name in (None, *tokenizer_files._KINDS[frame.kind].files):  # both, then the new one alone
        if name:
            (tmp_path / name).unlink()
        again, notes = read_vocabulary(tmp_path, size_of(folder), frame)
        assert again is not None, notes
        assert again.get_vocabulary() == pieces
        assert again(known["texts"]) == tokenizer(known["texts"])
        assert again.lowercase == tokenizer.lowercase


# Of a folder of transformers 5: what is changed, and what the note says.
WHOLE_DIFFERENT = [
    ("Roberta", "pre_tokenizer", {"add_prefix_space": True}, "add_prefix_space=True, not False"),
    ("Roberta", "pre_tokenizer", {"use_regex": False}, "use_regex=False"),
    ("Roberta", "pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer of type 'Whitespace'"),
    ("Roberta", None, {"pre_tokenizer": None}, "pre_tokenizer of type None"),
    ("Roberta", None, {"normalizer": {"type": "NFC"}}, "normalizer of type 'NFC'"),
    ("Roberta", "model", {"type": "Unigram"}, "type='Unigram', not 'BPE'"),
    ("Roberta", "model", {"byte_fallback": True}, "byte_fallback=True"),
    ("Roberta", "model", {"ignore_merges": True}, "ignore_merges=True"),
    ("Roberta", "model", {"dropout": 0.1}, "dropout=0.1"),
    ("Roberta", "post_processor", {"cls": ["</s>", 2]}, "post_processor with '</s>' '</s>'"),
    ("GPT2", None, {"post_processor": {"sep": ["a", 1], "cls": ["b", 1]}}, "'b' 'a' around"),
    ("Albert", "model", {"type": "BPE"}, "type='BPE', not 'Unigram'"),
    ("Albert", "model", {"byte_fallback": True}, "byte_fallback=True"),
    ("Albert", None, {"normalizer": {"type": "NFKD"}}, "normalizer of type 'NFKD'"),
    ("Albert", None, {"normalizer": None}, "normalizer of type None"),
    ("Albert", None, {"pre_tokenizer": {"type": "Metaspace", "split": False}}, "split=False"),
    (
        "Albert",
        None,
        {"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never"}},
        "prepend_scheme='never'",
    ),
]


@pytest.mark.parametrize(("kind", "part", "changes", "expected"), WHOLE_DIFFERENT)
def test_tokenizer_json_that_ours_cannot_do_leaves_ids(kind, part, changes, expected, tmp_path):
    source = GOLDEN / "tokenizers" / "5" / kind
    folder = changed(source, tmp_path / kind, part, changes)
    tokenizer, (note,) = read_vocabulary(folder, size_of(source), FRAMES[kind.lower()])
    assert tokenizer is None
    assert f"tokenizer.json: {expected}" in note or expected in note
    assert note.endswith("which ours cannot do, so the model takes token ids only")


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("Roberta", {"merges": None}, "merges"),
        ("Roberta", {"merges": [["a", 1]]}, "merges"),
        ("Roberta", {"vocab": {"<s>": 0, "a": 7}}, "without gaps"),
        ("Albert", {"vocab": {"<s>": 0}}, "pairs of a piece and its score"),
        ("Albert", {"vocab": [["a", "b"]]}, "pairs of a piece and its score"),
        ("Albert", {"unk_id": 88}, "`unk_id`"),
    ],
)
def test_a_damaged_tokenizer_json_is_named(kind, changes, expected, tmp_path):
    source = GOLDEN / "tokenizers" / "5" / kind
    folder = changed(source, tmp_path / kind, "model", changes)
    with pytest.raises(ValueError, match=expected):
        read_vocabulary(folder, size_of(source), FRAMES[kind.lower()])


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("Deberta", {"merges": [["a", "n"]]}, "other merges than merges.txt"),
        ("Albert", {"vocab": [["a", 0.0]]}, "other pieces than spiece.model"),
    ],
)
def test_generations_that_disagree_leave_ids(kind, changes, expected, tmp_path):
    folder = changed(GOLDEN / "tokenizers" / "4" / kind, tmp_path / kind, "model", changes)
    shutil.copytree(FOLDER / kind.lower(), folder, dirs_exist_ok=True)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["unk_id"] = 0
    (folder / "tokenizer.json").write_text(json.dumps(content))
    tokenizer, (note,) = read(kind.lower(), folder)
    assert tokenizer is None
    assert f"tokenizer.json: {expected}" in note


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
def test_settings_that_ours_cannot_do_leave_ids(kind, settings, expected, tmp_path):
    folder = changed(FOLDER / kind, tmp_path / kind, None, settings, "tokenizer_config.json")
    tokenizer, (note,) = read(kind, folder)
    assert tokenizer is None
    assert expected in note


def test_the_unknown_token_of_mpnets_first_pieces_may_be_named(tensorflow, tmp_path):
    """Its vocabulary has `<unk>` beside `[UNK]`, which is the one that is used."""
    added = {"3": {"content": "<unk>", "special": True}}
    name = "tokenizer_config.json"
    folder = changed(FOLDER / "mpnet", tmp_path / "mpnet", "added_tokens_decoder", added, name)
    assert read("mpnet", folder)[0].unk_token == "[UNK]"


def test_words_of_chinese_leave_ids_and_a_note(tensorflow, tmp_path):
    """RoFormer's own tokenizer finds them by a segmenter."""
    folder = shutil.copytree(FOLDER / "roformer", tmp_path / "roformer")
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("\u65e5\u672c\n")
    tokenizer, (note,) = read("roformer", folder, ids()["roformer"]["size"] + 1)
    assert tokenizer is None
    assert "vocab.txt: pieces of several Chinese characters" in note
    assert "Chinese segmenter" in read("roformer")[1][-1]


@pytest.mark.parametrize("kind", ["albert", "mpnet"])
def test_a_vocabulary_of_another_size_is_refused(kind, tensorflow):
    with pytest.raises(ValueError, match="token vectors, which is 7"):
        read(kind, size=7)


NOT_UTF_8 = (FOLDER / "albert" / "spiece.model").read_bytes() + b"\n\x06\n\x02a\xff\x18\x01"


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"no model", "is not a SentencePiece model"), (NOT_UTF_8, "is not UTF-8")],
)
def test_a_damaged_sentencepiece_model_is_named(content, expected, tensorflow, tmp_path):
    folder = shutil.copytree(FOLDER / "albert", tmp_path / "albert")
    (folder / "spiece.model").write_bytes(content)
    tokenizer, (note,) = read("albert", folder)
    assert tokenizer is None
    assert expected in note
    with pytest.raises(ValueError, match=expected.removeprefix("is ")):
        TupeTokenizer(sentencepiece=content)


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
