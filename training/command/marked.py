"""Tables inside Markdown files, between two comments."""

END = "<!-- end -->"


def begin(command):
    """Returns the comment in front of a table that a command makes."""
    return f"<!-- {command.split(' ')[0].rsplit('.', 1)[-1]}: made by `python -m {command}` -->"


def replaced(text, command, table):
    """Returns a text with the table behind the comment of `command` replaced.

    Args:
        text: content of the file.
        command: module and arguments that make the table.
        table: the new table.

    Raises:
        ValueError: if the comments are not there.
    """
    first = begin(command)
    if text.count(first) != 1 or END not in text.split(first)[1]:
        raise ValueError(
            f"The file must have the line {first!r} once and {END!r} after it. "
            f"Received: {text.count(first)} such lines"
        )
    before, rest = text.split(first)
    return f"{before}{first}\n{table}\n{END}{rest.split(END, 1)[1]}"
