"""The quickstart's plan in five lines, the steps of `--minutes`, and what can be done next."""

import types

import pytest

from keras_tupe.tokenizers import WordPiece
from training.quickstart.publish import next_steps
from training.quickstart.run import MIN_STEPS, steps_within
from training.quickstart.settings import Settings


@pytest.mark.parametrize("slow", [0.7, 1.0, 2.5])
@pytest.mark.parametrize("number", [1, 3])
def test_the_steps_fit_into_the_minutes(slow, number):
    """What was measured on two idle cores: compiling and step, the rest of a method, the end."""
    compiling, step, taken, rest, end = (slow * x for x in (12.0, 0.030, 45.0, 13.5, 32.0))
    minutes = 6.0 * slow
    steps = steps_within(minutes, taken, compiling, step, number)
    seconds = taken + number * (compiling + rest + steps * 1.34 * step) + end
    assert 0.8 * 60 * minutes < seconds < 60 * minutes


def test_minutes_that_leave_no_steps_name_those_that_are_enough():
    with pytest.raises(ValueError, match=r"--minutes must cover .* 3 methods .*") as error:
        steps_within(0.5, 40.0, 12.0, 0.03, 3)
    words = str(error.value).split()
    assert words[-3:-1] == ["minutes.", "Received:"]
    least = float(words[-4])
    assert MIN_STEPS <= steps_within(least, 40.0, 12.0, 0.03, 3) < 5 * MIN_STEPS
    (told,) = Settings(minutes=0.0, out="no_such_folder").problems()
    assert told == "--minutes must be a number above 0. Received: 0.0"


def test_it_says_in_five_lines_what_it_is_about_to_do():
    lines = Settings().in_words().splitlines()
    assert [line[:3] for line in lines] == [f"{number}. " for number in range(1, 6)]
    assert all(len(line) <= 100 for line in lines)
    for word in ("docstrings", "8,000", "none, absolute, tupe_r", "exchanged", "saved_models/"):
        assert word in " ".join(lines)
    mine = Settings(corpus="my.txt", positions="alibi", minutes=9, out="x").in_words()
    assert "my.txt" in mine
    assert "1 encoder, alibi" in mine
    assert "2,200" not in mine


def test_the_next_steps_fit_the_corpus():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat"]
    data = types.SimpleNamespace(
        tokenizer=WordPiece(pieces),
        task_test=types.SimpleNamespace(texts=["The grey Cat of ours sat on the mat.", "x"]),
    )
    told = next_steps(Settings(corpus="my own.txt", out="o"), data)
    assert "--text 'The grey Cat of ours [MASK] on the mat.'" in told
    assert "prepare --input 'my own.txt'" in told
    told = next_steps(Settings(), data)
    assert "--text 'a [MASK] of integers'" in told
    assert "saved_models/quickstart/preset" in told
