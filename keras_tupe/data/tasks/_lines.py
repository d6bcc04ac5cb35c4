"""Text files as lines, with mistakes named by file and line."""

import pathlib


def file_place(path, number):
    """How messages name a line of a file."""
    return f"file={str(path)!r}, line {number}"


def read_text(path, what):
    """Reads a UTF-8 file.

    Args:
        path: file name; a byte-order mark at its beginning is dropped.
        what: what the file must be, for the messages.

    Returns:
        A string.

    Raises:
        ValueError: if it is not there, or is not UTF-8; the message names the line.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(
            f"There must be {what} under this name, and there is no file. "
            f"Received: file={str(path)!r}"
        )
    content = path.read_bytes()
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"The file must be {what} in UTF-8; convert it, for instance with iconv. Received: "
            f"{file_place(path, line)}, first bad byte at offset {error.start}"
        ) from None


def read_lines(path, what):
    """Reads the lines of a UTF-8 file, without their ends (LF or CRLF).

    Only these end a line: U+2028, form feeds and their like are text.

    Args:
        path: file name.
        what: what the file must be, for the messages.

    Returns:
        List of strings; an empty last line is left out.

    Raises:
        ValueError: as `read_text`, or if there is not one line.
    """
    lines = [line.removesuffix("\r") for line in read_text(path, what).split("\n")]
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise ValueError(f"The file must be {what}, and is empty. Received: file={str(path)!r}")
    return lines
