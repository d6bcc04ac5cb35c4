"""The command line of a script, made from its dataclass of settings."""

import argparse
import dataclasses


def setting(default, text):
    """Returns a dataclass field with a default and a help text (unit and range included)."""
    return dataclasses.field(default=default, metadata={"help": text})


def parse(settings_class, arguments=None, description=None):
    """Returns the settings that a command line asks for.

    A field `max_steps` becomes the option `--max-steps`. The type of the default is the type of
    the option; a `None` default takes its type from the annotation.

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
        default = "" if field.default is None else f" Default: {field.default}."
        parser.add_argument(
            "--" + field.name.replace("_", "-"),
            type=_type_of(field),
            default=field.default,
            help=field.metadata["help"] + default,
        )
    settings = settings_class(**vars(parser.parse_args(arguments)))
    problems = settings.problems() if hasattr(settings, "problems") else []
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def _type_of(field):
    if field.default is not None:
        return type(field.default)
    return next(kind for kind in (int, float, str) if kind.__name__ in str(field.type))
