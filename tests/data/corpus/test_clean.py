"""The clean-up: each rule of its docstring, and that plain prose goes through untouched."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_tupe.data import clean_text

# What the clean-up is about, so that arbitrary text holds it often.
SPECIAL = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u200a\u2028\u2029\u202f\u205f\u3000"
    "\x00\x7f\x80\xad\u200b\u200c\u200d\u200e\u202e\u2060\u2066\ufeff\ufffd \n"
    "e\u0301\u0327\u0338=\u1100\u1161\u11a8\u212b\u2126\u0958\ufb1d"
)
characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from(SPECIAL)
texts = st.text(characters, max_size=40)


def test_every_white_space_becomes_a_space_or_a_line_end():
    line_ends = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
    for space in {*filter(str.isspace, map(chr, range(0x110000))), "\r\n"} - {"\x1f"}:
        shown = "\n" if space in {*line_ends, "\r\n"} else " "
        found = clean_text(f"{space}One{space}two{space} {space}Three{space}")
        assert found == f"One{shown}two{shown}Three"


INVISIBLE = [
    *range(0x09),
    *range(0x0E, 0x1C),
    0x1F,
    *range(0x7F, 0x85),
    *range(0x86, 0xA0),
    *(0xAD, 0x61C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F)),
    *(0x2060, *range(0x2066, 0x206A), 0xFEFF, 0xFFFD),
]


def test_what_shows_nothing_is_removed():
    for code in INVISIBLE:
        assert clean_text(f"{chr(code)}o{chr(code)}{chr(code)}ne{chr(code)}") == "one", hex(code)
    kept = [c for c in range(0x80) if clean_text(f"a{chr(c)}b") == f"a{chr(c)}b"]
    assert kept == [0x0A, *range(0x20, 0x7F)]


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_joiners_are_kept(joiner):
    word = f"\u0645\u06cc{joiner}\u062e\u0648\u0627\u0647\u0645"
    assert clean_text(f" {word} ") == word


def test_text_is_composed_and_nothing_more():
    assert clean_text("Cafe\u0301 A\u030a \u212b") == "Caf\u00e9 \u00c5 \u00c5"
    kept = "\ufb01 \u00b2 \u2460 \uff21 Stra\u00dfe \u0130 \u2019"  # only NFKC would change these
    assert clean_text(kept) == kept
    assert clean_text("e\u200b\u0301") == "\u00e9"  # composed after the removal


def test_blank_lines_and_spaces_around_lines_go():
    assert clean_text(" \t\n  One.  \n \n\n\t Two  three. \n\n ") == "One.\nTwo three."


@pytest.mark.parametrize("text", ["", " ", "\n", "\ufeff", "\u200b \r\n\t\x00\u3000"])
def test_what_shows_nothing_at_all_is_empty(text):
    assert clean_text(text) == ""


@settings(max_examples=500)
@given(texts)
def test_cleaning_twice_is_cleaning_once(text):
    assert clean_text(clean_text(text)) == clean_text(text)


@settings(max_examples=500)
@given(texts)
def test_the_result_is_composed_and_its_white_space_is_plain(text):
    cleaned = clean_text(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    for line in cleaned.split("\n"):
        assert cleaned == "" or line
        assert line == " ".join(line.split(" "))
        assert not line.startswith(" ")
        assert not line.endswith(" ")
        assert "  " not in line
    assert {c for c in cleaned if c.isspace()} <= {" ", "\n"}
    assert not {c for c in cleaned if unicodedata.category(c) == "Cc"} - {"\n"}
    assert cleaned == "\n".join(cleaned.splitlines())


@settings(max_examples=300)
@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.just("\n"), max_size=60))
def test_plain_ascii_prose_keeps_its_words_and_lines(text):
    cleaned = clean_text(text)
    lines = [line.split() for line in text.split("\n")]
    assert [line.split() for line in cleaned.split("\n") if line] == [
        line for line in lines if line
    ]
