"""What the files of a Hugging Face folder say about its tokenizer, and what ours makes of it."""

import json

import pytest
from bert_cases import PIECES, write_hf

from keras_tupe.convert import from_hf, tokenizer_files
from keras_tupe.convert.tokenizer_files import read_vocabulary

NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
NORMALIZER |= {"strip_accents": None, "lowercase": True}
SPECIAL = [{"id": place, "content": piece} for place, piece in enumerate(PIECES[:5])]
WHOLE = {
    "added_tokens": SPECIAL,
    "normalizer": NORMALIZER,
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {piece: place for place, piece in enumerate(PIECES)},
    },
}


def read(folder, pieces=PIECES, **files):
    """Returns the tokenizer and the notes of a folder with these files besides its vocabulary."""
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return read_vocabulary(folder, len(pieces))


def whole(part, **changes):
    """Returns a tokenizer.json with changes in one part."""
    return {"tokenizer": {**WHOLE, part: {**WHOLE[part], **changes}}}


# What is in the files, and what the note says: the file, and what ours cannot do.
DIFFERENT = [
    (
        {"tokenizer_config": {"tokenizer_class": "BertJapaneseTokenizer"}},
        "tokenizer_config.json: tokenizer_class='BertJapaneseTokenizer'",
    ),
    (
        {"config": {"tokenizer_class": "RobertaTokenizer"}},
        "config.json: tokenizer_class='RobertaTokenizer'",
    ),
    (
        {"tokenizer_config": {"tokenizer_class": ["BertTokenizer"]}},
        "tokenizer_class=['BertTokenizer']",
    ),
    (
        {"tokenizer_config": {"word_tokenizer_type": "mecab"}},
        "tokenizer_config.json: word_tokenizer_type='mecab'",
    ),
    (
        {"tokenizer_config": {"subword_tokenizer_type": "character"}},
        "subword_tokenizer_type='character'",
    ),
    ({"tokenizer_config": {"auto_map": {"AutoTokenizer": ["own.Code", None]}}}, "auto_map="),
    ({"tokenizer_config": {"never_split": ["the"]}}, "tokenizer_config.json: never_split 'the'"),
    (
        {"tokenizer_config": {"added_tokens_decoder": {"6": {"content": "cat"}}}},
        "tokenizer_config.json: added_tokens_decoder 'cat'",
    ),
    (
        {"tokenizer_config": {"additional_special_tokens": [{"content": "cat"}, "mat"]}},
        "additional_special_tokens 'cat', 'mat'",
    ),
    ({"tokenizer_config": {"bos_token": "<s>"}}, "tokenizer_config.json: bos_token '<s>'"),
    ({"added_tokens": {"[E1]": 11}}, "added_tokens.json: the tokens '[E1]'"),
    (
        {"special_tokens_map": {"mask_token": "<mask>", "unk_token": "[UNK]"}},
        "special_tokens_map.json: mask_token='<mask>', which",
    ),
    (
        {"special_tokens_map": {"additional_special_tokens": list("abcde")}},
        "additional_special_tokens 'a', 'b', 'c' and 2 more",
    ),
    (
        {"tokenizer_config": {"do_lower_case": True}, **whole("normalizer", lowercase=False)},
        "tokenizer.json: lowercase=False, not True",
    ),
    ({"tokenizer_config": {"tokenize_chinese_chars": False}}, "tokenize_chinese_chars=False"),
    (
        {"tokenizer_config": {"do_lower_case": True, "strip_accents": False}},
        "tokenizer_config.json: strip_accents=False, not True",
    ),
    ({"tokenizer_config": {"mask_token": {"content": "<mask>"}}}, "mask_token='<mask>'"),
    (whole("normalizer", lowercase="yes"), "tokenizer.json: lowercase='yes'"),
    (whole("normalizer", strip_accents=False), "strip_accents=False, not True"),
    (whole("normalizer", handle_chinese_chars=False), "handle_chinese_chars=False"),
    (whole("normalizer", type="NFC"), "tokenizer.json: normalizer of type 'NFC'"),
    ({"tokenizer": {**WHOLE, "normalizer": None}}, "normalizer of type None"),
    (whole("pre_tokenizer", type="Whitespace"), "pre_tokenizer of type 'Whitespace'"),
    (whole("model", type="BPE"), "tokenizer.json: type='BPE'"),
    (whole("model", vocab={"[PAD]": 0}), "tokenizer.json: other pieces than vocab.txt"),
    (
        {"tokenizer": {**WHOLE, "added_tokens": [*SPECIAL, {"id": 6, "content": "cat"}]}},
        "tokenizer.json: added_tokens 'cat'",
    ),
]


@pytest.mark.parametrize(("files", "expected"), DIFFERENT)
def test_what_ours_cannot_do_leaves_ids_and_a_note_that_names_it(files, expected, tmp_path):
    tokenizer, (note,) = read(tmp_path, **files)
    assert tokenizer is None
    assert expected in note
    assert note.endswith("which ours cannot do, so the model takes token ids only")


LOWER = {"do_lower_case": True}


@pytest.mark.parametrize(
    ("files", "lowercase", "note"),
    [
        ({"tokenizer_config": LOWER, "tokenizer": WHOLE}, True, None),
        (
            {
                "config": {"tokenizer_class": "BertTokenizerFast"},
                "tokenizer_config": {
                    **LOWER,
                    "tokenizer_class": "BertTokenizer",
                    "word_tokenizer_type": "basic",
                    "subword_tokenizer_type": "wordpiece",
                    "never_split": None,
                    "additional_special_tokens": [],
                    "added_tokens_decoder": {"4": {"content": "[MASK]", "lstrip": True}},
                    "mask_token": "[MASK]",
                    "bos_token": None,
                },
                "special_tokens_map": {"mask_token": {"content": "[MASK]"}, "pad_token": "[PAD]"},
                "added_tokens": {"[MASK]": 4},
            },
            True,
            None,
        ),
        ({"tokenizer_config": {"do_lower_case": False}}, False, None),
        (whole("normalizer", lowercase=False, strip_accents=False), False, "as tokenizer.json"),
        ({}, True, "neither tokenizer_config.json nor tokenizer.json says otherwise"),
    ],
)
def test_files_that_agree_with_ours_give_ours(files, lowercase, note, tmp_path):
    tokenizer, notes = read(tmp_path, **files)
    assert "newer than the tables" in notes[-1]
    notes = notes[:-1]
    assert tokenizer.lowercase is lowercase
    said = [each for each in notes if "lower-cased" in each]
    assert len(said) == (note is not None)
    assert note is None or note in said[0]


def whole_file(folder, **changes):
    """Writes the one file of transformers 5, by the library that it uses."""
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.BertWordPieceTokenizer({piece: n for n, piece in enumerate(PIECES)})
    content = {**json.loads(theirs.to_str()), **changes}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    settings = {"backend": "tokenizers", "tokenizer_class": "BertTokenizer", "cls_token": "[CLS]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return read_vocabulary(folder, len(PIECES))


TEMPLATE = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]"}}]}
TEMPLATE["single"] += [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}]


@pytest.mark.parametrize("changes", [{}, {"post_processor": TEMPLATE}])
def test_tokenizer_json_alone_gives_ours(changes, tmp_path):
    tokenizer, notes = whole_file(tmp_path, **changes)
    assert list(tokenizer.get_vocabulary()) == list(PIECES)
    assert tokenizer.lowercase is True
    assert "as tokenizer.json says" in " ".join(notes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"normalizer": None}, "normalizer of type None"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer of type 'Whitespace'"),
        ({"model": {"vocab": {}}}, "type=None, not 'WordPiece'"),
        (
            {"post_processor": {**TEMPLATE, "single": TEMPLATE["single"][:2]}},
            "post_processor with '[CLS]' around texts",
        ),
        ({"post_processor": {"sep": ["[CLS]", 2], "cls": ["[SEP]", 3]}}, "'[SEP]' '[CLS]' around"),
    ],
)
def test_tokenizer_json_alone_that_ours_cannot_do_leaves_ids_and_a_note(
    changes, expected, tmp_path
):
    tokenizer, (note,) = whole_file(tmp_path, **changes)
    assert tokenizer is None
    assert expected in note
    assert "the model takes token ids only" in note


def test_ids_with_gaps_are_refused(tmp_path):
    content = whole("model", vocab={"[PAD]": 0, "[UNK]": 2})["tokenizer"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="from 0 on, without gaps"):
        read_vocabulary(tmp_path, 2)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([*PIECES[:4], *PIECES[5:], "dog"], "it lacks [MASK]"),
        (["dog", *PIECES[1:]], "it lacks [PAD]"),
        ([*PIECES, "cat"], "line 12 repeats 'cat' of line 7"),
        ([*PIECES, ""], "line 12 is empty"),
        ([*PIECES, "a\N{NO-BREAK SPACE}b"], "line 12 has white space in it"),
        ([*PIECES, "a\N{LINE SEPARATOR}b"], "line 12 has white space in it"),
        ([*PIECES, "a\0b"], "line 12 has a NUL in it"),
        ([*PIECES, "##" + "x" * 257], "line 12 has more than 256 bytes"),
    ],
)
def test_a_vocabulary_that_ours_cannot_use_leaves_ids_and_a_note(pieces, expected, tmp_path):
    tokenizer, (note,) = read(tmp_path, pieces)
    assert tokenizer is None
    assert f"vocab.txt: {expected}; so the model takes token ids only" in note


def test_a_vocabulary_that_the_op_refuses_leaves_ids_and_a_note(tmp_path, monkeypatch):
    pytest.importorskip("tensorflow_text")
    monkeypatch.setattr(tokenizer_files._WordPiece, "why_unusable", lambda *_: None)
    tokenizer, (note,) = read(tmp_path, [*PIECES, "a\0b"])
    assert tokenizer is None
    assert "vocab.txt" in note


def test_the_vocabulary_of_another_tokenizer_need_not_fit_the_model(tmp_path):
    folder = write_hf(tmp_path / "bert", {"tokenizer_class": "BertweetTokenizer"}, pieces=["a 5"])
    model, report = from_hf(folder)
    assert model.preprocessor is None
    assert "tokenizer_class='BertweetTokenizer'" in report.notes[0]


def test_a_damaged_tokenizer_file_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="must hold a JSON object.*tokenizer.json"):
        read(tmp_path)
