"""Answers a question by a grid of runs: methods compared, probes, pruning, tables of papers.

    keras-tupe study --list
    keras-tupe study probe --positions none absolute tupe_r --seeds 2 --out probes
    keras-tupe study probe --help
    keras-tupe study tupe-table1 --scale laptop --plan
    keras-tupe study mine.py --out mine

The first word is the name of a study, or a file of your own: a .py file that sets STUDY, a `Study`
of `training.study.study`. Each study has its own options; --plan tells what would be
done. All of them write `study.json`, `study.md` and pictures into --out, beside a folder for each
run, which is complete or not there: the same command goes on where it was stopped, and does
nothing twice where more is asked. Settings that runs there were not made with are refused.
"""

import sys

from training.command.settings import nearest
from training.command.shell import WRONG, command_of
from training.study import study
from training.study.command import answer

Settings = study.StudyOptions  # that all studies have


def list_text():
    """Returns all studies, each with what it does."""
    found = {}
    for name in study.names():
        one = study.find(name)[0]
        found[name] = one.about.splitlines()[0]
        found |= {f"  {word}": asks for word, asks in (one.named or dict)().items()}
    width = max(map(len, found))
    return "\n".join(f"{name:{width}}  {about}" for name, about in found.items())


def main(arguments=None):
    """Runs the command line."""
    words = sys.argv[1:] if arguments is None else list(map(str, arguments))
    if words[:1] in (["--help"], ["-h"]):
        print(f"usage: study NAME ... | NAME --help | --list | --help\n\n{__doc__}\n{list_text()}")
        return
    if words == ["--list"]:
        print(list_text())
        return
    if not words or words[0].startswith("-"):
        received = f"no name before {words[0]}" if words else "none"
        near = f"; the nearest option is {nearest(words[0], ['--list', '--help'])}" if words else ""
        _wrong(
            f"unrecognized arguments: {words[0]}{near}."
            if words and words[0] not in ("--list", "--help")
            else f"NAME must name the study, one of {study.names()}. Received: {received}"
        )
    try:
        found, name = study.find(words[0])
    except (ValueError, ImportError, SyntaxError) as error:
        _wrong(str(error))
    own = words if words[0] != name and found.named is not None else words[1:]
    answer(found, name, own, command_of("study", words), "study")


def _wrong(text):
    sys.stderr.write("".join(f"study: {line}\n" for line in text.splitlines()))
    sys.exit(WRONG)


if __name__ == "__main__":
    main()
