"""BERT's normalization is that of the `tokenizers` package, character by character."""

import functools
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from tiny_vocabularies import BERT_TOKENS
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from keras_tupe.tokenizers import WordPiece

# What Unicode calls otherwise now than it did in version 3.2; all others that differ are younger
# than that, marks and punctuation which the tables of `tokenizers` do not know.
CHANGED = {True: {"\u1734", "\u1885", "\u1886"}, False: set()}  # in lower case: no marks then
NO_PUNCTUATION = {"\u166d"}  # any more
SCRIPTS = (
    *((0x20, 0x7F), (0xA0, 0x180), (0x370, 0x530), (0x5D0, 0x5EB), (0x620, 0x650)),
    *((0x1F00, 0x2000), (0x2010, 0x2040), (0x2070, 0x209D), (0x3040, 0x3100), (0x4E00, 0x4F00)),
    *((0xAC00, 0xAC80), (0xFF01, 0xFF5F), (0x1D400, 0x1D455), (0x1F600, 0x1F640)),
)


@functools.cache
def assigned():
    codes = map(chr, range(0x20000))
    return [code for code in codes if unicodedata.category(code) not in ("Cn", "Cs", "Co")]


@functools.cache
def both(lowercase):
    """Ours and theirs, with a vocabulary that spells everything."""
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    found = {character for code in assigned() for character in normalizer.normalize_str(code)}
    spelled = sorted(c for c in found | set("a") if not c.isspace() and c != "\0")
    pieces = [*BERT_TOKENS, *spelled, *(f"##{piece}" for piece in spelled)]
    theirs = Tokenizer(models.WordPiece(dict(zip(pieces, range(len(pieces)), strict=True))))
    theirs.model.unk_token = "[UNK]"
    theirs.normalizer, theirs.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    return WordPiece(pieces, lowercase), theirs


def differing(lowercase, texts, in_graph=False):
    """Numbers of the texts whose ids differ."""
    ours, theirs = both(lowercase)
    wanted = [row.ids for row in theirs.encode_batch(texts, add_special_tokens=False)]
    tokenize = tf.function(ours.tokenize, autograph=False) if in_graph else ours.tokenize
    found = tokenize(tf.constant(texts)).to_list()
    pairs = zip(found, wanted, strict=True)
    return [number for number, (ids, expected) in enumerate(pairs) if ids != expected]


@pytest.mark.parametrize("in_word", [False, True])
@pytest.mark.parametrize("lowercase", [True, False])
def test_each_character_alone_and_inside_a_word_gives_the_same_pieces(lowercase, in_word):
    texts = [f"a{code}a" if in_word else code for code in assigned()]
    found = [assigned()[number] for number in differing(lowercase, texts)]
    before = {code for code in found if unicodedata.ucd_3_2_0.category(code) != "Cn"}
    assert before == CHANGED[lowercase] | (NO_PUNCTUATION if in_word else set())
    assert len(found) < len(assigned()) / 100


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("lowercase", [True, False])
def test_lines_of_mixed_scripts_give_the_same_pieces(lowercase, in_graph):
    known = set(assigned()) - {assigned()[n] for n in differing(lowercase, assigned())}
    generator = np.random.default_rng(7)
    letters = [[chr(c) for c in range(*ends) if chr(c) in known] for ends in SCRIPTS]
    lines = [
        " ".join(
            "".join(generator.choice(letters[generator.integers(len(letters))], 5))
            for _ in range(6)
        )
        for _ in range(500)
    ]
    assert differing(lowercase, lines, in_graph) == []


def test_greek_letters_lose_their_accents():
    ours = WordPiece([*BERT_TOKENS, "\u03b1", "##\u03c9", "##\u03c3"])
    words = ["\u1f0d\u1ff6\u03c3", "\u1f08\u03a9\u03a3", "\u03b1\u03c9\u03c3"]
    assert ours.tokenize(words).to_list() == [[5, 6, 7]] * 3
