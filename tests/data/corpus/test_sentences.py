"""The sentence rule, case by case."""

import pytest

from keras_tupe.data.corpus.sentences import split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["A cat sat.", "It slept!", "Did it?", "Yes."],
        ['He said "stop."', "Then he left."],
        ["(See below.)", '"Quoted," she said.', "(A remark.)"],
        ["It costs 2.50 dollars at example.com today."],
        ["Dr. Smith met J. R. Tolkien, e.g. in Oxford.", "St. Mary is near."],
        ["See Fig. 3 and cf. Section 2.", "3 apples fell."],
        ["Apples, pears, etc. are fruit."],
        ["He came to Paris in Nov. 1918.", "\u00c9mile did too."],
        ["No full stop at the end"],
    ],
)
def test_sentences_are_found(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_line_break_inside_a_sentence_is_a_space():
    assert split_sentences("It is hard\nwrapped  text, by\r\nMr.\nSmith. It goes\non.") == [
        "It is hard wrapped text, by Mr. Smith.",
        "It goes on.",
    ]


def test_a_line_that_ends_with_a_stop_ends_a_sentence():
    assert split_sentences("as follows:\nfirst one;\n(second one.)\nthird") == [
        "as follows:",
        "first one;",
        "(second one.)",
        "third",
    ]


@pytest.mark.parametrize("document", ["", " \n\t ", "\n"])
def test_blank_text_has_no_sentences(document):
    assert split_sentences(document) == []
