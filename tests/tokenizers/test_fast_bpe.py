"""fastBPE's pieces, against its algorithm written down once more."""

import itertools
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_vocabularies import SENTENCES, TUPE_TOKENS, fast_bpe_files, merged

from keras_tupe.tokenizers import FastBpe

any_words = st.lists(
    st.one_of(
        st.sampled_from(" ".join(SENTENCES).lower().split()), st.text("aehnorst", max_size=9)
    ),
    max_size=8,
).map(" ".join)


def cut(text):
    """Returns words, and signs as words of their own."""
    spaced = "".join(f" {x} " if unicodedata.category(x)[0] in "PS" else x for x in text.lower())
    return spaced.split()


def pieces_of(word, codes):
    """fastBPE's `process_bpe`: the pair of the lowest rank is merged until there is none."""
    ranks = {pair: rank for rank, pair in enumerate(codes)}
    symbols = [*word[:-1], f"{word[-1]}</w>"]
    while known := [pair for pair in itertools.pairwise(symbols) if pair in ranks]:
        symbols = merged(symbols, min(known, key=ranks.get))
    return [*(f"{x}@@" for x in symbols[:-1]), symbols[-1].removesuffix("</w>")]


@settings(max_examples=150, deadline=None)
@given(text=any_words, number=st.integers(0, 90))
def test_words_are_cut_as_the_algorithm_says(text, number):
    pieces, codes = fast_bpe_files()
    codes = codes[:number]
    (found,) = FastBpe(pieces, codes).tokenize([text]).to_list()
    known = {piece: index for index, piece in enumerate(pieces)}
    expected = [piece for word in cut(text) for piece in pieces_of(word, codes)]
    assert found == [known.get(piece, known["<unk>"]) for piece in expected]


def test_a_pair_that_overlaps_is_merged_from_the_left():
    pieces = [*TUPE_TOKENS[:4], "aa@@", "a@@", "a", "aa", "<mask>"]
    tokenizer = FastBpe(pieces, [("a", "a"), ("a", "a</w>")])
    rows = tokenizer.tokenize(["aa", "aaa", "aaaa", "aaaaa"]).to_list()
    told = [[pieces[i] for i in row] for row in rows]
    assert told == [["aa"], ["aa@@", "a"], ["aa@@", "aa"], ["aa@@", "aa@@", "a"]]


def test_offsets_are_those_of_the_text():
    pieces, codes = fast_bpe_files()
    tokenizer = FastBpe(pieces, codes[:40])
    texts = [*SENTENCES, "  Caf\u00e9,\u3000THE dogs!  ", "", "\u0394 sat"]
    ids, starts, ends = (part.to_list() for part in tokenizer.tokenize_with_offsets(texts))
    assert ids == tokenizer.tokenize(texts).to_list()
    for text, *row in zip(texts, ids, starts, ends, strict=True):
        encoded = text.encode()
        for piece, start, end in zip(*row, strict=True):
            part = encoded[start:end].decode()
            if piece != tokenizer.unknown_id:
                assert part.lower() == pieces[piece].removesuffix("@@")
            else:
                assert not re.search(r"\s", part)
        covered = "".join(encoded[a:b].decode() for a, b in zip(*row[1:], strict=True))
        assert covered == "".join(text.split())


def test_codes_are_read_as_both_programs_write_them(tmp_path):
    pieces, codes = fast_bpe_files()
    expected = FastBpe(pieces, codes).tokenize(SENTENCES).to_list()
    (tmp_path / "pieces.txt").write_text("\n".join(pieces) + "\n")
    for lines in (
        [f"{a} {b} {count}" for count, (a, b) in enumerate(codes)],  # fastBPE
        ["#version: 0.2", *(f"{a} {b}" for a, b in codes)],  # subword-nmt
    ):
        (tmp_path / "codes.txt").write_text("\n".join(lines) + "\n")
        assert FastBpe(tmp_path / "pieces.txt").tokenize(SENTENCES).to_list() == expected


@pytest.mark.parametrize(
    ("pieces", "codes", "error", "sentence"),
    [
        ([], None, TypeError, "Codes must be pairs of symbols. Received: NoneType"),
        ([], [("a", "b", "c")], ValueError, r"Received: \('a', 'b', 'c'\)"),
        (["a"], [], ValueError, "The vocabulary lacks"),
        (["a", "a"], [], ValueError, "once. Received: 1 that are there twice"),
    ],
)
def test_what_is_no_vocabulary_is_refused(pieces, codes, error, sentence):
    with pytest.raises(error, match=sentence):
        FastBpe(pieces, codes)


@pytest.mark.parametrize("line", ["a", "a b c d", " b", "a ", "a b x y"])
def test_a_line_that_is_no_code_is_named(line, tmp_path):
    path = tmp_path / "codes.txt"
    path.write_text(f"t h 9\n{line}\n")
    with pytest.raises(ValueError, match=rf"two symbols and a count.*codes.txt', line 2: '{line}'"):
        FastBpe(TUPE_TOKENS, path)


def test_a_batch_is_as_its_texts_alone():
    tokenizer = FastBpe(*fast_bpe_files())
    together = tokenizer.tokenize(SENTENCES).to_list()
    assert together == [tokenizer.tokenize([text]).to_list()[0] for text in SENTENCES]
    assert tokenizer.unknown_id not in np.concatenate(together)
