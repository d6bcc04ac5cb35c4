"""Named settings: what a file says, below the command line and above the defaults."""

import dataclasses

import pytest
from commands import refused_settings

from training.command import config_file
from training.command.settings import COMMAND_LINE, parse, setting


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a test, one of each kind."""

    config: str | None = setting(None, "Named settings.")
    steps: int = setting(100, "Steps.")
    rate: float = setting(0.5, "Rate.")
    fast: bool = setting(False, "Whether fast.")
    name: str = setting("base", "Name.")
    words: tuple = setting((), "Words.")
    limit: int | None = setting(7, "Limit.")
    given: dict = dataclasses.field(default_factory=dict, compare=False)


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "my.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_the_command_line_wins_over_the_file_and_the_file_over_the_defaults(write):
    path = write('steps = 5\nrate = 2\nname = "mini"\nfast = true\nwords = ["a", "b"]')
    settings = parse(Settings, ["--rate", "0.25", "--config", path, "--no-fast"])
    assert settings == Settings(path, steps=5, rate=0.25, name="mini", words=("a", "b"))
    assert settings.given == {
        "steps": path,
        "name": path,
        "words": path,
        "rate": COMMAND_LINE,
        "fast": COMMAND_LINE,
        "config": COMMAND_LINE,
    }


def test_a_value_that_equals_the_default_was_still_given(write):
    path = write("steps = 5")
    settings = parse(Settings, ["--steps", "100", "--config", path])
    assert settings.steps == 100
    assert settings.given["steps"] == COMMAND_LINE


def test_an_option_of_several_words_replaces_those_of_the_file(write):
    path = write('words = ["a", "b"]')
    settings = parse(Settings, ["--words", "c", "d", "--config", path, "--words", "e"])
    assert settings.words == ("c", "d", "e")


@pytest.mark.parametrize("value", ["none", "12"])
def test_a_number_that_may_be_missing_is_taken_back_with_none(value, write):
    path = write("limit = 3")
    expected = None if value == "none" else 12
    assert parse(Settings, ["--config", path]).limit == 3
    assert parse(Settings, ["--config", path, "--limit", value]).limit == expected
    path = write('limit = "none"')
    assert parse(Settings, ["--config", path]).limit is None


def test_all_mistakes_of_file_and_command_line_are_told_at_once(write):
    path = write(
        'stepz = 5\nrate = "high"\nfast = 1\nname = 3\nwords = ["a", 1]\nlimit = 1.5\nsteps = true'
    )
    lines = refused_settings(Settings, "--config", path, "--wurds", "x", "--limit", "many")
    expected = [
        "--wurds; the nearest option is --words",
        "--limit must be an integer, or none. Received: 'many'",
        "my.toml has an unknown key, 'stepz'; the nearest known key is 'steps'. Received: stepz=5",
        "rate in my.toml must be a number. Received: 'high'",
        "fast in my.toml must be true or false. Received: 1",
        "name in my.toml must be a text. Received: 3",
        "words in my.toml must be a list of texts. Received: ['a', 1]",
        "limit in my.toml must be an integer, or none. Received: 1.5",
        "steps in my.toml must be an integer. Received: True",
    ]
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert part in line


def test_a_file_names_no_other_file(write):
    (line,) = refused_settings(Settings, "--config", write('config = "laptop"'))
    assert "unknown key, 'config'" in line


def test_files_that_do_not_exist_are_answered_with_the_nearest_name(tmp_path):
    (line,) = refused_settings(Settings, "--config", "laptpo")
    assert "nearest is 'laptop'" in line
    (line,) = refused_settings(Settings, "--config", str(tmp_path / "no.toml"))
    assert "does not exist" in line


@pytest.mark.parametrize("content", [b"steps = ", b"steps = 1\nsteps = 2", b'name = "caf\xe9"'])
def test_files_that_are_no_toml_are_answered_with_a_sentence(content, tmp_path):
    path = tmp_path / "my.toml"
    path.write_bytes(content)
    (line,) = refused_settings(Settings, "--config", str(path))
    assert "--config must be a readable TOML file: " in line
    assert line.endswith(f"Received: {str(path)!r}")


def test_a_script_without_named_settings_has_no_config():
    @dataclasses.dataclass(frozen=True)
    class Plain:
        steps: int = setting(1, "Steps.")

    assert parse(Plain, ["--steps", "3"]) == Plain(3)
    (line,) = refused_settings(Plain, "--config", "laptop", "stray")
    assert "unrecognized arguments: --config" in line


def test_the_files_of_the_package_are_there():
    of_pretrain = [
        *("demo", "electra-small", "huang-base", "laptop"),
        *("tupe-base", "tupe-electra-base"),
    ]
    of_pairs = ["transformer-base"]
    assert config_file.names() == sorted(of_pretrain + of_pairs)
    assert config_file.names("pretrain") == of_pretrain
    assert config_file.names("finetune seq2seq") == of_pairs
