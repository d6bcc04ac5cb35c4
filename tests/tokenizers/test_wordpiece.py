"""What is special to WordPiece."""

import itertools

import pytest
from tiny_vocabularies import BERT_TOKENS

from keras_tupe.tokenizers import WordPiece

PIECES = [*BERT_TOKENS, "the", "cat", "##s", "sat", "cafe", "The", "."]


def test_a_word_that_cannot_be_spelled_is_one_unknown():
    unknown = BERT_TOKENS.index("[UNK]")
    assert WordPiece(PIECES).tokenize(["catsat the " + "s" * 101]).to_list() == [
        [unknown, 5, unknown]
    ]


def test_lower_casing_strips_accents_too():
    texts = ["The CAF\u00c9", "the cafe\u0301"]
    assert WordPiece(PIECES).tokenize(texts).to_list() == [[5, 9], [5, 9]]
    assert WordPiece(PIECES, lowercase=False).tokenize(texts).to_list() == [[10, 1], [5, 1]]


def test_text_touching_a_mask_is_cut_as_if_there_were_a_space():
    rows = WordPiece(PIECES).tokenize_with_masks(["the[MASK]s.", "[mask]", "[MASK]cat"]).to_list()
    assert rows == [[5, 4, 1, 11], [1, 1, 1], [4, 6]]


def test_a_broken_vocabulary_is_refused_with_a_sentence():
    for pieces, error, sentence in (
        *(
            (
                [x for x in PIECES if x != token],
                ValueError,
                rf"lacks \['\{token[:-1]}\]'\].*Received",
            )
            for token in BERT_TOKENS
        ),
        ([*PIECES, "cat", "the"], ValueError, r"once.*repeated pieces \['the', 'cat'\]"),
        ([*PIECES, ""], ValueError, r"at least one character.*'' at position 12"),
        ([*PIECES, "two words"], ValueError, "no white space.*'two words' at position 12"),
        ([*PIECES, "a\0b"], ValueError, r"NUL.*'a\\x00b' at position 12"),
        ([*PIECES, "##\ud800"], ValueError, "surrogate pair.* at position 12"),
        ([*PIECES, 7], TypeError, "must hold strings.*int at position 12"),
        ([*PIECES, "##" + "s" * 257], ValueError, "at most 256 bytes"),
        ([], ValueError, r"lacks \['\[CLS\]', '\[SEP\]', '\[PAD\]', '\[MASK\]', '\[UNK\]'\]"),
        ([*BERT_TOKENS, "##"], ValueError, "pieces that words are made of: .*Received: 6 pieces"),
    ):
        with pytest.raises(error, match=sentence):
            WordPiece(pieces)


def test_the_longest_piece_is_taken():
    assert WordPiece([*PIECES, "##" + "s" * 256]).vocabulary_size == 13


def test_vocabulary_files_of_every_system_are_read_alike(tmp_path):
    pieces, path = [*PIECES, "\u5b57"], tmp_path / "vocabulary.txt"
    for line_end, mark, last in itertools.product(("\n", "\r\n"), (b"", b"\xef\xbb\xbf"), (0, 1)):
        path.write_bytes(mark + (line_end.join(pieces) + line_end * last).encode())
        assert WordPiece(path).pieces == pieces


def test_a_file_that_is_not_utf_8_is_refused_by_name(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("\n".join([*PIECES, "caf\u00e9"]).encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.txt', which is not UTF-8"):
        WordPiece(path)


def test_the_example_of_berts_own_tests_is_cut_as_there():
    pieces = ["[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn", "##ing", ","]
    op = WordPiece([*pieces, "[PAD]", "[MASK]"])
    assert op.tokenize(["UNwant\u00e9d,running"]).to_list() == [[7, 4, 5, 10, 8, 9]]
