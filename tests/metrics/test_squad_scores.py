"""Exact match and F1 by the rules of the official scorer, on hard cases written by hand."""

import string

import pytest

from keras_tupe.data import SquadQuestion
from keras_tupe.metrics import SquadScores, normalize_answer, squad_scores


def question(*answers, name="q"):
    return SquadQuestion(name, "Title", "A paragraph.", "Who?", tuple((a, 0) for a in answers))


def score(prediction, *answers):
    """Returns `(exact, f1)` of one answer."""
    return squad_scores([question(*answers)], {"q": prediction}).per_question["q"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"), ("a cat, an owl and the dog", "cat owl and dog"),
        ("THE theory of A another android", "theory of another android"), ("the", ""),
        ("The. An? (a)", ""), ("the the cat", "cat"), ("  two\t words\n here ", "two words here"),
        # Punctuation goes first and leaves no gap, so new words and new articles arise.
        ("well-known", "wellknown"), ("U.S.A.", "usa"), ("1,234.50", "123450"),
        ("$5 & 10%", "5 10"), ("a-ha", "aha"), ("t.h.e end", "end"), ("vitamin A.", "vitamin"),
        ("the_end", "theend"), ("a_the a-n the\u2014a", "athe \u2014"), ("d'Arc's", "darcs"),
        ("a/b", "ab"), ("- . !", ""), (string.punctuation, ""),
        # Beyond ASCII nothing is punctuation, and an article may stand beside it.
        ("caf\u00e9 \u2014 na\u00efve", "caf\u00e9 \u2014 na\u00efve"),
        ("\u201cthe cat\u201d", "\u201c cat\u201d"), ("the cat\u2019s", "cat\u2019s"),
        ("1997\u20131999", "1997\u20131999"),
        ("\u65e5\u672c\u3001\u6771\u4eac\u3002", "\u65e5\u672c\u3001\u6771\u4eac\u3002"),
        ("\u20ac5", "\u20ac5"),
        # Full-width letters are lower-cased but are no articles; full-width marks stay.
        ("\uff34\uff48\uff45 \uff23\uff01", "\uff54\uff48\uff45 \uff43\uff01"),
        # White space is what Python splits at: no-break, ideographic, line separator.
        ("two\u00a0spaces\u3000and\u2028three", "two spaces and three"),
        ("zero\u200bwidth", "zero\u200bwidth"),
        # A combining accent is no part of a word for the article's pattern.
        ("a\u0301 la", "\u0301 la"), ("\u00e1 la", "\u00e1 la"), ("\u00e0 the", "\u00e0"),
        ("STRASSE \u1e9e", "strasse \u00df"), ("\u0130", "i\u0307"), ("", ""),
    ],
)  # fmt: skip
def test_answers_are_normalized_as_by_the_official_scorer(text, expected):
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "share"),
    [
        ("the cat", ["Cat."], 1, 1), ("black cat", ["the black cat"], 1, 1),
        ("cat", ["the black cat"], 0, 2 / 3), ("black cat sat", ["black cat"], 0, 4 / 5),
        ("dog", ["cat"], 0, 0), ("cats", ["cat"], 0, 0),
        # Multisets: a word counts as often as both have it; order does not count.
        ("cat cat cat", ["cat"], 0, 2 / 4), ("cat cat", ["cat dog cat"], 0, 4 / 5),
        ("cat black", ["black cat"], 0, 1),
        # The best gold answer counts, for each score by itself.
        ("cat", ["dog", "a cat", "black cat"], 1, 1),
        ("in 1997", ["1997", "in the year 1997"], 0, 4 / 5), ("cat dog", ["dog cat", "owl"], 0, 1),
        ("black cat", ["cat", "cat"], 0, 2 / 3),
        # Answers without words: equal to each other, yet without a common word.
        ("", ["cat"], 0, 0), ("the", ["cat"], 0, 0), ("", ["The"], 1, 0),
        ("...", ["a", "cat"], 1, 0), ("", [""], 1, 0),
        # Unicode: composed and decomposed letters differ, and so do dashes and quotation marks.
        ("caf\u00e9", ["Caf\u00c9"], 1, 1), ("caf\u00e9", ["cafe\u0301"], 0, 0),
        ("1997\u20131999", ["1997-1999"], 0, 0), ("\u201ccat\u201d", ["cat"], 0, 0),
        ('"cat"', ["cat"], 1, 1), ("\uff15", ["5"], 0, 0),
        ("two\u00a0spaces", ["two spaces"], 1, 1), ("\u6771\u4eac", ["\u6771\u4eac\u3002"], 0, 0),
        ("well known", ["well-known"], 0, 0),
    ],
)  # fmt: skip
def test_hard_cases_get_the_scores_of_the_official_rules(prediction, answers, exact, share):
    found = score(prediction, *answers)
    assert found == (exact, pytest.approx(share, abs=1e-15))
    assert type(found[0]) is int
    assert type(found[1]) is float


def test_totals_are_percentages_over_all_questions():
    questions = [question("cat", name=name) for name in "abcd"]
    found = squad_scores(questions, {"a": "The cat", "b": "black cat", "c": "dog", "d": ""})
    assert found.exact_match == 25
    assert found.f1 == pytest.approx(100 * (1 + 2 / 3) / 4)
    assert list(found.per_question) == ["a", "b", "c", "d"]
    assert found.unanswered == ()


def test_missing_predictions_count_as_nothing_and_foreign_ones_do_not_count():
    questions = [question("cat", name="a"), question("", name="b")]
    found = squad_scores(questions, {"a": "cat", "other": "cat"})
    assert found == SquadScores(50.0, 50.0, {"a": (1, 1.0), "b": (0, 0.0)}, ("b",))


def test_an_empty_answer_to_every_question_scores_nothing():
    questions = [question(text, name=text) for text in ("the cat", "1,234", "\u65e5\u672c")]
    found = squad_scores(questions, {one.id: "" for one in questions})
    assert (found.exact_match, found.f1) == (0, 0)


CAT = question("cat")


@pytest.mark.parametrize(
    ("questions", "predictions", "error", "words"),
    [
        ([], {"q": "cat"}, ValueError, "must be questions.*0 questions, the first None"),
        ([CAT, CAT], {"q": "cat"}, ValueError, "Two questions have one id.*id='q'"),
        ([question()], {"q": "cat"}, ValueError, "one gold answer.*question 'q'"),
        ([CAT], {}, ValueError, "at least one.*1 questions, the first 'q'; 0 predictions"),
        ([CAT], {"p": "cat"}, ValueError, "of another file\\?.*1 predictions"),
        ([CAT], ["cat"], TypeError, "`predictions` must be a dict.*type list"),
        ([CAT], {"q": None}, TypeError, "must be a string.*type NoneType, question 'q'"),
        ([question(5)], {"q": "5"}, TypeError, "must be a string.*type int, question 'q'"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_a_sentence(questions, predictions, error, words):
    with pytest.raises(error, match=words):
        squad_scores(questions, predictions)
