"""The command line of a script, made from its dataclass of settings."""

import argparse
import dataclasses

from training.command import config_file
from training.command.kinds import kind_of, nearest, values_of
from training.command.quiet import quiet_tensorflow
from training.command.shell import WRONG

COMMAND_LINE = "command line"
# Options of before -> what they are called now.
RENAMED = {
    "--dev": "--valid",
    "--dev-limit": "--valid-limit",
    "--rows": "--limit",
    "--warmup-share": "--warmup",
}
# of a parser that keeps the words as they are, and nothing about what is not given
_FORM = {
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "argument_default": argparse.SUPPRESS,
}


def setting(
    default,
    text,
    positional=False,
    texts=False,
    each=False,
    by_commas=False,
    rule=None,
    one_of=None,
    counts=True,
    may_change=False,
):
    """Returns a dataclass field with a default, a help text and what its value must be.

    Args:
        default: value, of the setting's type.
        text: help, with the unit; what the value must be is added to it.
        positional: whether it is given by its position on the command line, without an option.
        texts: whether the values of a tuple are texts, which may hold commas of their own.
        each: whether, besides, every text has the option written before it.
        by_commas: whether a text is a list, as one text by commas; the command line takes spaces
            too.
        rule: what it must be, in words, and a function of a value -> whether it is that, see
            `training.command.checks`.
        one_of: names, of which it must be one.
        counts: whether what comes out depends on it, so that a run cannot be gone on with by
            another value, see `counting`.
        may_change: whether a run may be gone on with by another value if the user says so.
    """
    if rule is not None:
        text = f"{text} Must be {rule[0]}."
    if one_of is not None:
        text = f"{text} One of {', '.join(one_of)}."
    metadata = {"positional": positional, "texts": texts or each, "each": each}
    metadata |= {"help": text, "by_commas": by_commas, "rule": rule, "one_of": one_of}
    metadata |= {"counts": counts, "may_change": may_change}
    return dataclasses.field(default=default, metadata=metadata)


def counting(settings):
    """Returns the settings that what comes out depends on, a dictionary."""
    values = dataclasses.asdict(settings)
    counted = [field.name for field in _fields(settings) if field.metadata["counts"]]
    return {name: values[name] for name in counted}


def parse(settings_class, arguments=None, description=None, name=None):
    """Returns the settings that a command line asks for. TensorFlow is quiet from here on.

    A field `max_steps` becomes the option `--max-steps`. The type of the default is the type of
    the option; a `None` default takes its type from the annotation. A positional one may be left
    out: `problems()` says what then. A boolean `skip_bad` becomes
    `--skip-bad` and `--no-skip-bad`; a tuple takes one value or more, by spaces or by commas, see
    `values_of`. A number that is `None` by default may be given as `none`.

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
        name: of the command; lines about mistakes begin with it.

    Raises:
        SystemExit: with the mistakes on standard error.
    """
    quiet_tensorflow()
    parser = argparse.ArgumentParser(name, description=description, **_FORM)
    _add_options(parser, settings_class)
    settings, problems = _read(settings_class, parser, arguments)
    problems += settings.problems() if hasattr(settings, "problems") else []
    if problems:
        parser.exit(WRONG, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def read(settings_class, words):
    """Returns the settings that words of a command line ask for, and what is wrong with the words.

    Nothing is printed, the program goes on, and `problems()` of the settings is not called.

    Args:
        settings_class: as in `parse`.
        words: list of strings.

    Returns:
        The settings, `None` if the words cannot be told apart, and a list of sentences.
    """
    parser = _Quiet(add_help=False, **_FORM)
    _add_options(parser, settings_class)
    try:
        return _read(settings_class, parser, words)
    except argparse.ArgumentError as error:
        return None, [str(error)]


class _Quiet(argparse.ArgumentParser):
    def error(self, message):
        raise argparse.ArgumentError(None, message)


def _read(settings_class, parser, arguments):
    fields = _fields(settings_class)
    options = {field.name for field in fields}
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
    return settings_class(**values), problems


def _fields(settings_class):
    return [field for field in dataclasses.fields(settings_class) if "help" in field.metadata]


def _add_options(parser, settings_class):
    for field in _fields(settings_class):
        shown = field.default
        if isinstance(shown, tuple):
            shown = " ".join(map(str, shown))
        default = "" if shown in (None, "") else f" Default: {shown}."
        kind = {}
        if isinstance(field.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        elif field.metadata.get("each"):
            kind = {"action": "append"}
        elif _is_list(field):
            kind = {"nargs": "+", "action": "extend"}
        names, place = [_option(field)], {"dest": field.name}
        if field.metadata.get("positional"):
            names, place = [field.name], {"nargs": "?", "metavar": field.name.upper()}
            if _is_list(field):
                place, kind = {**place, "nargs": "*"}, {}
        parser.add_argument(
            *names,
            default=argparse.SUPPRESS,
            help=field.metadata["help"] + default,
            **place,
            **kind,
        )


def _option(field):
    return "--" + field.name.replace("_", "-")


def _is_list(field):
    return isinstance(field.default, tuple) or field.metadata.get("by_commas", False)


def _value(field, given):
    if isinstance(given, bool):
        return given
    if field.metadata.get("by_commas"):
        return ",".join(given)
    if isinstance(given, list):
        return tuple(given) if field.metadata.get("texts") else values_of(given)
    return kind_of(field).from_text(given)


def _unknown_options(words, fields):
    """Returns a sentence for each option that there is not; its values are not mistakes too."""
    options = [_option(field) for field in fields if not field.metadata.get("positional")]
    options.append("--help")
    found = []
    for word in words:
        if word.startswith("--"):
            name = word.split("=")[0]
            near = RENAMED[name] if RENAMED.get(name) in options else nearest(name, options)
            found.append(f"unrecognized arguments: {word}; the nearest option is {near}.")
        elif not found:
            found.append(f"unrecognized arguments: {word}; options start with --.")
    return found
