"""Settings as words of a command line: needed only where a process starts."""

import dataclasses


def words(settings, always=()):
    """Returns the command line that settings come from, as short as it is: a list of strings.

    Args:
        settings: an object of a class that `training.command.settings.parse` takes.
        always: names of settings that are written at their defaults too.
    """
    named, positional = {}, []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if "help" not in field.metadata or (value == field.default and field.name not in always):
            continue
        if field.metadata["positional"]:
            positional += map(str, value if isinstance(value, tuple) else [value])
        else:
            named[field.name] = value
    return positional + option_words(named)


def option_words(values):
    """Returns options of a command line, a list of strings.

    Args:
        values: dictionary: name of a setting -> its value.

    Example:
        >>> option_words({"max_steps": 3, "fast": False, "rates": [1, 2], "length": None})
        ['--max-steps', '3', '--no-fast', '--rates', '1', '2', '--length', 'none']
    """
    found = []
    for name, value in values.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            found.append(f"--{option}" if value else f"--no-{option}")
        else:
            several = value if isinstance(value, list | tuple) else [value]
            found += [f"--{option}", *("none" if one is None else str(one) for one in several)]
    return found
