"""The command line of a script, made from its dataclass of settings."""

import argparse
import dataclasses

from training.command import config_file
from training.command.kinds import kind_of, nearest

COMMAND_LINE = "command line"


def setting(default, text, positional=False):
    """Returns a dataclass field with a default and a help text (unit and range included).

    Args:
        default: value, of the setting's type.
        text: help.
        positional: whether it is given by its place on the command line, without an option.
    """
    return dataclasses.field(default=default, metadata={"help": text, "positional": positional})


def parse(settings_class, arguments=None, description=None):
    """Returns the settings that a command line asks for.

    A field `max_steps` becomes the option `--max-steps`. The type of the default is the type of
    the option; a `None` default takes its type from the annotation. A positional one may be left
    out: `problems()` says what then. A boolean `skip_bad` becomes
    `--skip-bad` and `--no-skip-bad`; a tuple takes one text or more. A number that is `None` by
    default may be given as `none`.

    If there is a field `config`, it names a TOML file whose keys are the names of the fields:
    what the command line gives wins over the file, and the file over the defaults.

    Args:
        settings_class: frozen dataclass whose fields are made with `setting`. If it has a
            method `problems()`, the sentences that it returns stop the program, all at once. A
            static method `fitted(values, from_file, given)` returns the values once more, with
            what follows from other settings; the arguments are dictionaries by name. If it has
            a field `given` that is not made with `setting`, that becomes a dictionary: name of
            each setting that is not left at its default -> where it was given, that is
            `COMMAND_LINE` or the `--config`.
        arguments: list of strings; `sys.argv` by default.
        description: text above the options in `--help`.

    Raises:
        SystemExit: with the mistakes on standard error.
    """
    fields = [field for field in dataclasses.fields(settings_class) if "help" in field.metadata]
    options = {field.name for field in fields}
    parser = _parser(fields, description)
    namespace, unknown = parser.parse_known_args(arguments)
    problems = _unknown_options(unknown, fields)
    given = {}
    for field in fields:
        if hasattr(namespace, field.name):
            value = getattr(namespace, field.name)
            try:
                given[field.name] = _value(field, value)
            except ValueError:
                problems.append(f"{_option(field)} must be {kind_of(field)}. Received: {value!r}")
    from_file = {}
    if "config" in given:
        allowed = [field for field in fields if field.name != "config"]
        from_file, mistakes = config_file.read(given["config"], allowed)
        problems += mistakes
    values = {**from_file, **given}
    sources = dict.fromkeys(from_file, given.get("config"))
    sources |= dict.fromkeys(given, COMMAND_LINE)
    if hasattr(settings_class, "fitted"):
        values = settings_class.fitted(values, from_file, sources)
    if "given" in {field.name for field in dataclasses.fields(settings_class)} - options:
        values["given"] = sources
    settings = settings_class(**values)
    problems += settings.problems() if hasattr(settings, "problems") else []
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def _parser(fields, description):
    """Returns a parser that keeps the words as they are, and nothing about what is not given."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    for field in fields:
        default = "" if field.default in (None, (), "") else f" Default: {field.default}."
        kind = {}
        if isinstance(field.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        elif isinstance(field.default, tuple):
            kind = {"nargs": "+", "action": "extend"}
        names, place = [_option(field)], {"dest": field.name}
        if field.metadata.get("positional"):
            names, place = [field.name], {"nargs": "?", "metavar": field.name.upper()}
        parser.add_argument(
            *names,
            default=argparse.SUPPRESS,
            help=field.metadata["help"] + default,
            **place,
            **kind,
        )
    return parser


def _option(field):
    return "--" + field.name.replace("_", "-")


def _value(field, given):
    if isinstance(given, bool):
        return given
    return tuple(given) if isinstance(given, list) else kind_of(field).from_text(given)


def _unknown_options(words, fields):
    """Returns a sentence for each option that there is not; its values are not mistakes too."""
    options = [_option(field) for field in fields]
    found = []
    for word in words:
        if word.startswith("--"):
            near = nearest(word.split("=")[0], options)
            found.append(f"unrecognized arguments: {word}; the nearest option is {near}.")
        elif not found:
            found.append(f"unrecognized arguments: {word}; options start with --.")
    return found
