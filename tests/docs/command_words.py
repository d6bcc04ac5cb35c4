"""The commands of this repository in the lines of a shell, checked without running them."""

import importlib
import importlib.util
import pathlib
import re
import shlex

from training.__main__ import commands
from training.command import settings
from training.study import command as study_command

_ENDS = frozenset(";&|()")
_NAME = re.compile(r"\w+=")
_BEFORE = ("do", "then", "else", "if", "while", "!", "time", "nohup", "exec", "env")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_PLACEHOLDER = re.compile(r"(?<![<\w])<[a-z][\w ./-]*>")


class _AskedError(Exception):
    """Carries what a command was asked to parse, instead of its work."""


def problems(code):
    """Returns how many commands of ours a block of bash has, and a sentence for each mistake."""
    code = _without_heredocs(code)
    found = [f"a placeholder, {text}: write a real value" for text in _PLACEHOLDER.findall(code)]
    variables, number = {}, 0
    if found:
        return number, found
    for words in simple_commands(code):
        words = [_with_variables(word, variables) for word in words]
        while words and (_NAME.match(words[0]) or words[0] in _BEFORE):
            name, equals, value = words.pop(0).partition("=")
            variables |= {name: value} if equals else {}
        if words[:1] == ["for"] and len(words) > 3:
            variables[words[1]] = words[3]
        ours = _ours(words)
        if ours:
            number += 1
            found += _mistakes(*ours)
    return number, found


def simple_commands(code):
    """Returns the simple commands of a script: a list of words each, redirections left out."""
    found = []
    for line_words in _lines(code):
        words, is_target = [], False
        for word in line_words:
            if set(word) <= _ENDS:
                found.append(words)
                words = []
            elif set(word) <= {"<", ">", "&"}:
                is_target = True
                if words and words[-1].isdigit():
                    words.pop()  # the 2 of 2>
            elif is_target:
                is_target = False
            else:
                words.append(word)
        found.append(words)
    return [words for words in found if words]


def _lines(code):
    """Yields the words of each line; a quoted text may go over several."""
    line = ""
    for part in code.replace("\\\n", " ").splitlines():
        line += part
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
        lexer.whitespace_split = True
        try:
            yield list(lexer)
        except ValueError:  # the quote is still open
            line += "\n"
        else:
            line = ""
    if line:
        raise ValueError(f"A quotation is not closed. Received: {line!r}")


def _without_heredocs(code):
    lines, kept, end = code.splitlines(), [], None
    for line in lines:
        if end is not None:
            end = None if line.strip() == end else end
            continue
        here = _HEREDOC.search(line)
        kept.append(_HEREDOC.sub("", line))
        end = here[1] if here else None
    return "\n".join(kept)


def _with_variables(word, variables):
    return re.sub(r"\$\{?(\w+)\}?", lambda found: variables.get(found[1], found[0]), word)


def _ours(words):
    """Returns package, name and words of a command of ours, else `None`."""
    if words[:1] == ["keras-tupe"]:
        return "training", *_split(words[1:])
    if len(words) > 2 and re.fullmatch(r"python3?", words[0]) and words[1] == "-m":
        package, _, name = words[2].partition(".")
        if package in ("training", "benchmarks"):
            return (package, name, words[3:]) if name else (package, *_split(words[3:]))
        if package == "docs":
            return package, name, words[3:]
    return None


def _split(words):
    return (words[0].replace("-", "_") if words[:1] != [] else "--help"), words[1:]


def _mistakes(package, name, words):
    if name in ("--help", "-h", "--version") or "--help" in words:
        return []
    written = f"{package}.{name}".strip(".")
    if package == "training" and name not in commands():
        return [f"there is no command {name}"]
    spec = importlib.util.find_spec(written)
    if spec is None:
        return [f"there is no command {written}"]
    is_folder = spec.submodule_search_locations is not None
    return option_mistakes(f"{written}.__main__" if is_folder else written, words)


def option_mistakes(module, words):
    """Returns what a command has to say about its options, by its own settings."""
    module, asked = importlib.import_module(module), []
    door = study_command if hasattr(module, "answer") else module  # which reads the words
    if not hasattr(door, "parse"):
        return [f"{module.__name__} takes no options"] if words else []

    def parse(settings_class, arguments=None, *_):
        asked.extend([settings_class, words if arguments is None else arguments])
        raise _AskedError

    before, door.parse = door.parse, parse
    try:
        module.main(list(words))
    except _AskedError:
        return settings.read(asked[0], _without_own_config(asked[1]))[1]
    except SystemExit:
        is_file = words and words[0].endswith((".py", ".toml"))  # which a reader makes
        return [] if is_file else [f"there is no study {words[:1]}"]
    finally:
        door.parse = before
    return []


def _without_own_config(words):
    """Leaves out a `--config` that is a file, which a reader makes."""
    words = list(words)
    if "--config" in words:
        index = words.index("--config")
        if pathlib.Path(words[index + 1]).suffix == ".toml":
            del words[index : index + 2]
    return words
