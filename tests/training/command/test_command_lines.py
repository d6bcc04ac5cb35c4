import dataclasses

import commands
import pytest

from keras_tupe import attention_patterns, objectives, positions, tasks
from training.command.settings import parse, setting
from training.command.tables import END, begin, replaced


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Settings of a test."""

    max_steps: int = setting(3, "Steps, > 0.")
    rate: float | None = setting(None, "Rate.")

    def problems(self):
        return [
            f"{name} is negative" for name in ("max_steps", "rate") if (vars(self)[name] or 0) < 0
        ]


def test_fields_become_options_with_their_types():
    assert parse(Numbers, []) == Numbers()
    assert parse(Numbers, ["--max-steps", "5", "--rate", "0.5"]) == Numbers(5, 0.5)


def test_all_mistakes_are_named_at_once():
    printed = "\n".join(commands.refused_settings(Numbers, "--max-steps", -1, "--rate", -1))
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
def test_mistakes_in_the_command_line_are_answered_with_a_sentence(arguments, expected, tmp_path):
    printed = commands.refusal("quickstart", *arguments, "--out", tmp_path / "out")
    for part in expected:
        assert part in printed
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    printed = commands.refusal("quickstart", "--out", tmp_path)
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
def test_a_corpus_that_cannot_be_used_is_answered_with_a_sentence(content, expected, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_bytes(content)
    words = ("--corpus", corpus, "--out", tmp_path / "out")
    message = commands.refusal("quickstart", *words)
    assert any(part in message for part in expected.split("|")), message
    assert "Received: " in message
    assert [entry.name for entry in tmp_path.iterdir()] == ["corpus.txt"]


def test_a_table_is_put_between_its_comments_only():
    first = begin("docs.tables")
    text = f"before\n{first}\nold\n{END}\nafter\n"
    new = replaced(text, "docs.tables", "| new |")
    assert new == f"before\n{first}\n| new |\n{END}\nafter\n"
    with pytest.raises(ValueError, match="must have the line"):
        replaced("no comments", "docs.tables", "| new |")


KINDS = {
    "methods": positions.METHODS,
    "patterns": attention_patterns.PATTERNS,
    "objectives": objectives.OBJECTIVES,
    "tasks": tasks.TASKS,
    "studies": ["probe"],
    "configs": ["laptop"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_has_a_line_for_everything_of_its_kind(kind):
    lines = commands.done("list", kind).splitlines()
    names = {line.split()[0] for line in lines}
    assert names >= set(KINDS[kind])
    assert len(names) == len(lines)
    assert all(len(line.split()) > 2 for line in lines)


def test_a_list_is_of_a_known_kind():
    told = commands.refusal("list", "method", code=2)
    assert told.startswith("list: KIND must be one of ['methods', ")
    assert told.endswith("the nearest is 'methods'. Received: 'method'")


@dataclasses.dataclass(frozen=True)
class Lists:
    """Settings of a test."""

    files: tuple = setting((), "Files.", positional=True)
    names: tuple = setting((), "Names.")
    texts: tuple = setting((), "Texts.", texts=True)
    asked: tuple = setting((), "Questions.", each=True)
    steps: str = setting("", "Steps.", by_commas=True)


@pytest.mark.parametrize(
    "words", [["a", "b", "c"], ["a,b,c"], ["a,", "b,c"], ["a", "b,c"], ["a,b", "--names", "c"]]
)
def test_a_list_is_written_by_spaces_by_commas_or_both(words):
    assert parse(Lists, ["--names", *words]).names == ("a", "b", "c")
    assert parse(Lists, ["--steps", "3,4", "5"]).steps == "3,4,5"
    assert parse(Lists, ["a,b", "c"]).files == ("a", "b", "c")


def test_commas_of_a_value_stay_in_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine, first.py").touch()
    for word in ("mine, first.py", "mine, first.py:k=3", "mine, f*.py", "x:k=[1,2]", 'x:k="a,b"'):
        assert parse(Lists, ["--names", word]).names == (word,)
        assert parse(Lists, [word]).files == (word,)
    assert parse(Lists, ["--names", "x:k=[1,2],y"]).names == ("x:k=[1,2]", "y")
    found = parse(Lists, ["--texts", "One, two.", "Three.", "--asked", "a, b", "--asked", "c"])
    assert found.texts == ("One, two.", "Three.")
    assert found.asked == ("a, b", "c")


def test_lines_about_mistakes_begin_with_the_name_of_the_command(capsys):
    with pytest.raises(SystemExit):
        parse(Numbers, ["--max-steps", "-1", "--rates", "1"], name="mine")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("mine: ") for line in lines)
