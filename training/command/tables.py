"""Tables for the terminal and for Markdown, also between two comments of a Markdown file."""


def table(header, rows, right=()):
    """Returns a Markdown table with aligned columns.

    Args:
        header: list of strings.
        rows: list of lists of strings, each as long as the header.
        right: numbers of the columns that are aligned to the right.

    Example:
        >>> print(table(["method", "loss"], [["none", "5.05"]]))
        | method | loss |
        |--------|------|
        | none   | 5.05 |
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells):
        padded = (
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join(padded) + " |"

    rules = (
        "-" * (width + 1) + (":" if index in right else "-") for index, width in enumerate(widths)
    )
    rule = f"|{'|'.join(rules)}|"
    return "\n".join([line(header), rule, *map(line, rows)])


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
