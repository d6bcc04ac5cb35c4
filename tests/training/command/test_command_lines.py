import dataclasses

import pytest

from keras_tupe import positions
from training import methods
from training.command.settings import parse, setting
from training.command.tables import END, begin
from training.quickstart import __main__ as quickstart


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Settings of a test."""

    max_steps: int = setting(3, "Steps, > 0.")
    rate: float | None = setting(None, "Rate.")

    def problems(self):
        return [
            f"{name} is negative" for name in ("max_steps", "rate") if (vars(self)[name] or 0) < 0
        ]


def refuse(arguments, capsys):
    """Returns what a command line that must not run prints."""
    with pytest.raises(SystemExit) as stop:
        quickstart.main(arguments)
    assert stop.value.code not in (0, None)
    printed = capsys.readouterr().err
    return printed if stop.value.code == 2 else str(stop.value.code)


def test_fields_become_options_with_their_types():
    assert parse(Numbers, []) == Numbers()
    assert parse(Numbers, ["--max-steps", "5", "--rate", "0.5"]) == Numbers(5, 0.5)


def test_all_mistakes_are_named_at_once(capsys):
    with pytest.raises(SystemExit):
        parse(Numbers, ["--max-steps", "-1", "--rate", "-1"])
    printed = capsys.readouterr().err
    assert "max_steps is negative" in printed
    assert "rate is negative" in printed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--positions", "tupe_q"], ["Did you mean 'tupe_", "Received: position='tupe_q'"]),
        (["--positions", ","], ["at least one method", "Received: ','"]),
        (["--positions", "nowhere.py"], ["existing Python file", "nowhere.py"]),
        (["--size", "tny"], ["--size must be one of", "nearest is 'tiny'", "Received: 'tny'"]),
        (["--minutes", "0"], ["--minutes must be above 0", "Received: 0.0"]),
        (["--minutes", "-1"], ["--minutes must be above 0"]),
        (["--seed", "-3"], ["--seed must be an integer >= 0", "Received: -3"]),
        (["--corpus", "nowhere.txt"], ["--corpus must be a text file", "nowhere.txt"]),
        (["--stepz", "3"], ["unrecognized arguments"]),
    ],
)
def test_mistakes_in_the_command_line_are_answered_with_a_sentence(
    arguments, expected, capsys, tmp_path
):
    printed = refuse([*arguments, "--out", str(tmp_path / "out")], capsys)
    for part in expected:
        assert part in printed
    assert "Traceback" not in printed
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_of_somebody_else_is_left_alone(capsys, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    printed = refuse(["--out", str(tmp_path)], capsys)
    assert "was not made by keras_tupe" in printed
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "The file is empty"),
        (b"caf\xe9 au lait", "not UTF-8|UTF-8 text"),
        (b"one lonely document", "Separate documents with blank lines"),
        (b"\n\n".join(b"short text %d" % n for n in range(40)), "too small|more text"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_answered_with_a_sentence(
    content, expected, capsys, tmp_path
):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(content)
    message = refuse(["--corpus", str(corpus), "--out", str(tmp_path / "out")], capsys)
    assert any(part in message for part in expected.split("|")), message
    assert "Received: " in message
    assert [entry.name for entry in tmp_path.iterdir()] == ["corpus.txt"]


def test_the_method_table_has_a_row_for_every_method():
    lines = methods.method_table().splitlines()
    assert [line.split("`")[1] for line in lines[2:]] == sorted(positions.METHODS)


def test_the_method_table_is_put_between_its_markers_only():
    first = begin("training.methods --update README.md")
    text = f"before\n{first}\nold\n{END}\nafter\n"
    new = methods.updated(text)
    assert new == f"before\n{first}\n{methods.method_table()}\n{END}\nafter\n"
    assert methods.updated(new) == new
    with pytest.raises(ValueError, match="must have the line"):
        methods.updated("no markers")
