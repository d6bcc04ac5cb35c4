"""The command line of a script, made from its dataclass of settings."""

import argparse
import dataclasses


def setting(default, text):
    """Returns a dataclass field with a default and a help text (unit and range included)."""
    return dataclasses.field(default=default, metadata={"help": text})


def parse(settings_class, arguments=None, description=None):
    """Returns the settings that a command line asks for.

    A field `max_steps` becomes the option `--max-steps`. The type of the default is the type of
    the option; a `None` default takes its type from the annotation. A boolean `skip_bad` becomes
    `--skip-bad` and `--no-skip-bad`; a tuple takes one text or more.

    Args:
        settings_class: frozen dataclass whose fields are made with `setting`. If it has a
            method `problems()`, the sentences that it returns stop the program, all at once.
        arguments: list of strings; `sys.argv` by default.
        description: text above the options in `--help`.

    Raises:
        SystemExit: with the mistakes on standard error.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in dataclasses.fields(settings_class):
        default = "" if field.default in (None, ()) else f" Default: {field.default}."
        parser.add_argument(
            "--" + field.name.replace("_", "-"),
            default=field.default,
            help=field.metadata["help"] + default,
            **_kind_of(field),
        )
    values = vars(parser.parse_args(arguments))
    settings = settings_class(**{key: _hashable(value) for key, value in values.items()})
    problems = settings.problems() if hasattr(settings, "problems") else []
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def _kind_of(field):
    if isinstance(field.default, bool):
        return {"action": argparse.BooleanOptionalAction}
    if isinstance(field.default, tuple):
        return {"nargs": "+", "action": _Extend}
    if field.default is not None:
        return {"type": type(field.default)}
    kinds = (int, float, str)
    return {"type": next(kind for kind in kinds if kind.__name__ in str(field.type))}


class _Extend(argparse.Action):
    """Values of an option that is given twice come together; the first replace the default."""

    def __call__(self, parser, namespace, values, option_string=None):
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if before is self.default else before + values)


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value
