"""The options of methods: the table of one, the list of all."""

import json

from training.command.report import table


def options(name, method):
    """Returns the table of options."""
    if not method.options:
        return "None."
    rows = [
        [f"`{option}`", f"`{default!r}`", meaning(name, method, option)]
        for option, default in method.options.items()
    ]
    example = next((dict(one) for one in method.other_options if _differs(one, method)), {})
    return "\n\n".join(
        [
            table(["option", "default", "meaning"], rows),
            f"Given as `position_options={example}` in Python, and as "
            f"`--position-options '{json.dumps(example)}'` on the command line.",
        ]
    )


def _differs(options, method):
    return any(value != method.options[key] for key, value in options.items())


def meaning(name, method, option):
    """Returns what an option does.

    Raises:
        ValueError: if the record does not say it.
    """
    text = method.meaning(option)
    if not text:
        raise ValueError(
            "A method's record must say in `option_meanings` what each option does. Received: "
            f"none for {option!r} of {name!r}"
        )
    return text


def all_options(methods):
    """Returns a list of all options, each with its meanings and the methods that have it."""
    having = {}
    for name, method in methods.items():
        for option in method.options:
            meanings = having.setdefault(option, {})
            meanings.setdefault(meaning(name, method, option), []).append(name)
    return "\n".join(
        f"- `{option}`: {text} ({', '.join(f'[`{name}`]({name}.md)' for name in names)})"
        for option, meanings in sorted(having.items())
        for text, names in meanings.items()
    )
