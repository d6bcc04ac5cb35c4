"""Settings become words of a command line, and words become settings without a program's end."""

import pytest

from training.command.settings import read
from training.command.words import option_words, words
from training.evaluate.tasks.blimp import Settings as Blimp
from training.finetune.tasks.glue import Settings as Glue
from training.finetune.tasks.squad import Settings as Squad
from training.pretrain.settings import Settings as Pretrain


@pytest.mark.parametrize(
    "settings",
    [
        Glue(preset="p", data="d", tasks=("cola", "rte"), seeds=1, skip_bad=True, dropout=0.0),
        Glue(learning_rates=("1e-4", "2e-4"), check_counts=False),
        Squad(preset="p", train="t", valid="d", length=384, out="my out"),
        Blimp(presets=("p", "q"), paradigms=("a", "b"), limit=7),
        Pretrain(data="d", normalize_first=True, tensorboard=False, valid_batches=None),
    ],
)
def test_words_give_the_settings_that_they_were_made_of(settings):
    assert read(type(settings), words(settings)) == (settings, [])


def test_what_is_as_by_default_is_written_only_where_it_is_asked_for():
    assert words(Squad()) == []
    assert words(Squad(), always=("length",)) == ["--length", "512"]
    assert words(Squad(preset="p", seeds=9)) == ["p", "--seeds", "9"]
    assert option_words({"fast": True, "rates": [1, 2.5]}) == ["--fast", "--rates", "1", "2.5"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--lenth", "3"], "unrecognized arguments: --lenth; the nearest option is --length."),
        (["--length", "x"], "--length must be an integer. Received: 'x'"),
        (["--length"], "argument --length: expected one argument"),
        (["--help"], "unrecognized arguments: --help; "),
        (["--max", "3"], "ambiguous option: --max could match"),
    ],
)
def test_reading_words_neither_prints_nor_ends_the_program(given, expected, capsys):
    _, problems = read(Squad, given)
    assert len(problems) == 1
    assert problems[0].startswith(expected)
    assert capsys.readouterr() == ("", "")
