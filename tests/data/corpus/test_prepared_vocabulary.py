"""Which pieces begin a word, how many characters they stand for, and which end a sentence."""

import pytest

from keras_tupe.data import PreparedVocabulary, piece_characters, word_starts

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "##", ".", "##."]
PIECES += ["\u3002", "?"]


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    ids = {"start_id": 2, "end_id": 3, "pad_id": 0, "mask_id": 4, "unknown_id": 1}
    facts = {"sha256": "", "kind": "wordpiece", "size": len(PIECES), "lowercase": True}
    return PreparedVocabulary(path, **facts, **ids, special_ids=(0, 1, 2, 3, 4))


@pytest.mark.parametrize(
    ("kind", "pieces", "begin"),
    [
        ("wordpiece", ["[PAD]", "#", "##", "##s", "cat", "s##"], "110011"),
        ("sentencepiece", ["<s>", "\u2581", "\u2581cat", "s", "<0xE2>", ".", "_a"], "0110000"),
        ("byte_pair", ["\u0120the", "s"], "10"),
    ],
)
def test_pieces_that_begin_words_are_known_by_their_marks(kind, pieces, begin):
    assert word_starts(pieces, kind).tolist() == [digit == "1" for digit in begin]


def test_the_pieces_of_a_text_have_its_characters_and_a_space_before_each_word():
    text = "the cats the cat"
    assert piece_characters(PIECES, "wordpiece")[[5, 6, 7, 5, 6]].sum() == len(f" {text}")
    pieces = ["\u2581the", "\u2581cat", "s", "<0x0A>"]
    assert piece_characters(pieces, "sentencepiece").tolist() == [4, 4, 1, 1]
    assert piece_characters(["\u0120the", "s"], "byte_pair").tolist() == [4, 1]


def test_special_pieces_of_a_vocabulary_stand_for_no_character_and_an_unknown_one_for_one(
    vocabulary,
):
    assert vocabulary.characters.tolist() == [0, 1, 0, 0, 0, 4, 4, 1, 0, 2, 1, 2, 2]
    assert vocabulary.stop_ids == (9, 10, 11)  # with a full stop at their end


@pytest.mark.parametrize("function", [piece_characters, word_starts])
def test_an_unknown_kind_is_refused(function):
    with pytest.raises(ValueError, match=r"'sentencepiece', .*\]. Received: kind='letters'"):
        function(PIECES, "letters")
