"""Tables for the terminal and for Markdown."""


def table(header, rows):
    """Returns a Markdown table with aligned columns.

    Args:
        header: list of strings.
        rows: list of lists of strings, each as long as the header.

    Example:
        >>> print(table(["method", "loss"], [["none", "5.05"]]))
        | method | loss |
        |--------|------|
        | none   | 5.05 |
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])
