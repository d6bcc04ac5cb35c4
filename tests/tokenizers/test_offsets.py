"""Which bytes of a string each piece comes from."""

import functools
import re
import unicodedata

import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_vocabularies import BERT_TOKENS, SENTENCES, sentencepiece_model, wordpiece_pieces

from keras_tupe.data import train_sentencepiece_bpe
from keras_tupe.tokenizers import SentencePieceBpe, WordPiece, _offsets
from keras_tupe.tokenizers.wordpiece import of_any_character

SPACE = "\u2581"
KNOWING = ["letters", "letters_cased", "bytes", "bytes_cased"]  # nothing is unknown to them
CASES = ["wordpiece", "wordpiece_cased", "unknown", *KNOWING]
CHANGING = [
    *("\u00e9", "e\u0301", "E\u0301\u0323", "\u00df", "\ufb01", "\u2026", "\u00bd", "\u0130"),
    *("\ud55c", "\u1100\u1161\u11a8", "\uff76\uff9e", "\u65e5", "\u01c4", "\ufdfa", "\u0344"),
    *("\U0001f600", "\u2603\ufe0f", "\u200b", "\u00ad", "\u0301", "a\u00ad\u0301", "\u1e9b\u0323"),
    *("\x00", "\x01", " ", "  ", "\t", "\u3000", "\u00a8"),
    *("dog", "The", "ing", "words", "ff", ".", "[UNK]", "<unk>", SPACE),
]

# Marks that are newer than Python's tables: words that have them are taken as a whole.
NEWER = ["\U00010efd", "\U000113ce"]

DROPPED = "\x00\x01\u200b\u00ad"

known_text = st.lists(st.sampled_from(CHANGING), max_size=9).map("".join)
any_text = st.lists(
    st.one_of(st.sampled_from(CHANGING + NEWER), st.text(max_size=3)), max_size=9
).map("".join)


@functools.cache
def made(case):
    """The tokenizer of a case, and a function that normalises a text as it does."""
    lowercase = not case.endswith("_cased")
    if case.startswith(("wordpiece", "letters")):
        pieces = wordpiece_pieces() if case.startswith("wordpiece") else letters(lowercase)
        op = WordPiece(pieces, lowercase)
        return op, lambda text: of_any_character([text], lowercase).numpy()[0]
    model = sentencepiece_model() if case == "unknown" else bytes_model(lowercase)
    op = SentencePieceBpe(model, lowercase)
    oracle = sentencepiece.SentencePieceProcessor(model_proto=model)

    def normalize(text):
        if op.lowercase:
            text = tensorflow_text.case_fold_utf8([text]).numpy()[0]
        return oracle.normalize(text).replace(SPACE.encode(), b" ")

    return op, normalize


def letters(lowercase):
    """WordPieces that spell everything in `CHANGING`, some of them of two characters."""
    text = b"".join(of_any_character(CHANGING, lowercase).numpy()).decode()
    found = sorted({letter for letter in text if not letter.isspace()})
    pieces = [*found, "ss", "fi", "do", "\u1112\u1161"]
    return [*BERT_TOKENS, *pieces, *(f"##{piece}" for piece in pieces)]


def bytes_model(lowercase):
    """A model that spells unknown characters in bytes."""
    return train_sentencepiece_bpe([*SENTENCES, "caf\u00e9 .."], 380, lowercase)


def spans(op, text):
    """`(piece, start, end)` of all pieces of one text."""
    ids, starts, ends = op.tokenize_with_offsets([text])
    rows = zip(*(part.to_list()[0] for part in (ids, starts, ends)), strict=True)
    return [(op.pieces[piece], start, end) for piece, start, end in rows]


def plain(op, piece):
    """The bytes that a piece stands for, without spaces; `None` if it is unknown."""
    if piece == op.unknown_token:
        return None
    if byte := re.fullmatch("<0x(..)>", piece):
        return bytes.fromhex(byte[1])
    if isinstance(op, WordPiece):
        return piece.removeprefix("##").encode()
    return piece.replace(SPACE, " ").strip().encode()


@pytest.fixture(params=CASES)
def case(request):
    return request.param


@settings(max_examples=40, deadline=None)
@given(text=any_text)
@pytest.mark.parametrize("case", CASES)
def test_the_slice_of_a_piece_holds_the_piece(case, text):
    op, normalize = made(case)
    text = text.encode()
    for piece, start, end in spans(op, text):
        text[start:end].decode()  # whole characters
        expected = plain(op, piece)
        if expected is None:
            assert end > start
        else:
            assert expected in normalize(text[start:end])


@settings(max_examples=30, deadline=None)
@given(text=known_text)
@pytest.mark.parametrize("case", KNOWING)
def test_the_slice_of_a_piece_is_no_larger_than_it_must_be(case, text):
    op, normalize = made(case)

    def bare(text):
        return "".join(normalize(text.encode()).decode().split()).encode()

    # Where the text can be cut without changing what becomes of its halves, and how many bytes
    # become of the first one; all such places, and those that are not before a mark, or the vowel
    # of a Hangul syllable (or what is dropped before one).
    whole, done, cuts = bare(text), 0, ([], [])
    for place in range(len(text) + 1):
        first = bare(text[:place])
        if first + bare(text[place:]) == whole:
            cut = len(text[:place].encode()), len(first)
            cuts[0].append(cut)
            following = text[place:].lstrip(DROPPED)[:1] or " "
            joins = unicodedata.category(following)[0] == "M" or "\u1160" <= following <= "\u11ff"
            if not place or not joins:
                cuts[1].append(cut)
    for piece, start, end in spans(op, text.encode()):
        size = len(plain(op, piece))
        starts = [max(place for place, before in row if before <= done) for row in cuts]
        done += size
        ends = [min(place for place, before in row if before >= done) for row in cuts]
        if size:
            # Spaces before a piece, and what is dropped, may be inside or outside.
            assert start <= starts[0]
            assert bare(text.encode()[start : starts[1]].decode()) == b""
            assert ends[0] <= end
            assert bare(text.encode()[ends[1] : end].decode()) == b""
    assert done == len(whole)


@settings(max_examples=40, deadline=None)
@given(text=any_text)
@pytest.mark.parametrize("case", CASES)
def test_what_is_in_no_slice_normalises_to_nothing(case, text):
    op, normalize = made(case)
    text = text.encode()
    covered = bytearray(len(text))
    for _, start, end in spans(op, text):
        covered[start:end] = b"\1" * (end - start)
    for gap in re.finditer(b"\0+", bytes(covered)):
        assert normalize(text[slice(*gap.span())]).decode().strip() == ""


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.one_of(any_text, st.binary(max_size=20)), max_size=4))
@pytest.mark.parametrize("case", CASES)
def test_ids_are_those_of_tokenize_and_offsets_ascend(case, texts):
    op, _ = made(case)
    texts = [text if isinstance(text, bytes) else text.encode() for text in texts]
    ids, starts, ends = op.tokenize_with_offsets(tf.constant(texts, tf.string, [len(texts)]))
    assert ids.to_list() == op.tokenize(tf.constant(texts, tf.string, [len(texts)])).to_list()
    for text, first, last in zip(texts, starts.to_list(), ends.to_list(), strict=True):
        assert first == sorted(first)
        assert last == sorted(last)
        assert all(0 <= a <= b <= len(text) for a, b in zip(first, last, strict=True))


def test_offsets_are_ragged_int32_like_the_ids(case):
    op, _ = made(case)
    for part in op.tokenize_with_offsets(SENTENCES):
        assert isinstance(part, tf.RaggedTensor)
        assert part.dtype == tf.int32
        assert part.shape.as_list() == [len(SENTENCES), None]
    assert [part.to_list() for part in op.tokenize_with_offsets([])] == [[], [], []]
    assert [part.to_list() for part in op.tokenize_with_offsets(["", ""])] == [[[], []]] * 3


def test_english_sentences_are_cut_at_their_pieces(case):
    op, _ = made(case)
    for text in SENTENCES:
        found = spans(op, text)
        slices = [text[start:end].strip() for _, start, end in found]
        assert "".join(slices) == text.replace(" ", "")
        known = [(piece, cut) for (piece, _, _), cut in zip(found, slices, strict=True)]
        known = [(plain(op, piece), cut) for piece, cut in known if plain(op, piece)]
        assert all(piece == cut.lower().encode() for piece, cut in known if op.lowercase)
        assert len(known) > 5


@pytest.mark.parametrize(
    ("case", "text", "expected"),
    [
        ("wordpiece", "th\u00e9 dog", [(0, 4), (5, 8)]),
        ("wordpiece", "E\u0301\u0323 dog", [(0, 5), (6, 9)]),
        ("wordpiece", "dog\u200b dog", [(0, 3), (7, 10)]),
        ("bytes", "dog\u00c9", [(0, 3), (3, 5)]),
        ("bytes", "dog.e\u00ad\u0301 dog", [(0, 3), (3, 4), (4, 9), (9, 13)]),
        ("bytes", "dog x\u0301", [(0, 3), (3, 4), (4, 5), (5, 7), (5, 7)]),
        ("letters", "s\u00df", [(0, 1), (1, 3)]),
        ("letters", "\ud55c", [(0, 3), (0, 3)]),
        ("bytes", "\u65e5", [(0, 0), (0, 3), (0, 3), (0, 3)]),
        ("bytes", "\u0130", [(0, 0), (0, 2), (0, 2), (0, 2)]),
    ],
)
def test_characters_that_change_have_one_slice(case, text, expected):
    op, _ = made(case)
    assert [(start, end) for _, start, end in spans(op, text)] == expected


def test_a_model_that_splits_a_ligature_itself_gives_both_halves_all_of_it():
    op, _ = made("bytes_cased")
    halves = [
        (piece, start, end) for piece, start, end in spans(op, "o\u2026\u2026") if "." in piece
    ]
    assert "".join(piece for piece, _, _ in halves) == "......"
    assert {(start, end) for _, start, end in halves} == {(1, 4), (1, 7), (4, 7)}


def test_scripts_that_python_does_not_know_are_cut_at_words(monkeypatch):
    text = "strange dogs E\u0301\u0323 \u00df"
    op, _ = made("bytes")
    expected = spans(op, text)
    assert len(expected) > len(text.split()) + 2
    everything_is_a_starter = type("Kinds", (dict,), {"__missing__": lambda self, code: "S"})
    monkeypatch.setattr(_offsets, "_KINDS", everything_is_a_starter())
    assert spans(op, text) == expected


def test_offsets_inside_a_graph_are_refused_with_a_sentence(case):
    op, _ = made(case)
    function = tf.function(op.tokenize_with_offsets)
    with pytest.raises(ValueError, match=r"eager tensors only.*Received: a call inside a graph"):
        function(tf.constant(["a"]))


def test_what_is_no_batch_of_texts_is_refused_with_a_sentence(case):
    op, _ = made(case)
    with pytest.raises(ValueError, match=r"shape \(batch,\).*Received: "):
        op.tokenize_with_offsets("not in a list")
