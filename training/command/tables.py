"""Tables for the terminal and for Markdown."""


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
