"""How many characters pieces stand for, so that perplexities per character can be compared."""

import numpy as np
import pytest

from keras_tupe import data
from keras_tupe.data.corpus.prepared_vocabulary import PreparedVocabulary

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "##", "."]


def test_the_pieces_of_a_text_have_its_characters_and_a_space_before_each_word():
    text = "the cats the cat"
    ids = [5, 6, 7, 5, 6]
    characters = data.piece_characters(PIECES, "wordpiece")
    assert characters[ids].sum() == len(f" {text}")
    sentencepieces = ["\u2581the", "\u2581cat", "s", "<0x0A>"]
    found = data.piece_characters(sentencepieces, "sentencepiece")
    np.testing.assert_array_equal(found, [4, 4, 1, 1])
    assert data.piece_characters(["\u0120the", "s"], "byte_pair").tolist() == [4, 1]


def test_special_pieces_of_a_vocabulary_stand_for_no_character_and_an_unknown_one_for_one(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join(PIECES) + "\n")
    special = {"start_id": 2, "end_id": 3, "pad_id": 0, "mask_id": 4, "unknown_id": 1}
    vocabulary = PreparedVocabulary(
        path, "", "wordpiece", len(PIECES), True, **special, special_ids=(0, 1, 2, 3, 4)
    )
    assert vocabulary.characters.tolist() == [0, 1, 0, 0, 0, 4, 4, 1, 0, 2]


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="Received: kind='letters'"):
        data.piece_characters(PIECES, "letters")
