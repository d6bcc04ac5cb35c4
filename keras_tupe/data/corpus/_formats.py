"""Lines to documents, for each format of a corpus.

A parser is a function of `(lines, options)` that yields `(line number, text or Problem)`, where
`lines` yields `(line number, bytes)`, from 1. It never raises for what a file holds.
"""

import dataclasses
import re

from keras_tupe._json_file import parse_json

_OPENING = re.compile(rb'<doc id="[^"]*".*>\s*$')
_CLOSING = b"</doc>"


@dataclasses.dataclass(frozen=True)
class Problem:
    """One sentence on what is wrong with a document or a file, without where it is."""

    sentence: str


_UNCLOSED = Problem("The article has no </doc>: is the file cut off?")


@dataclasses.dataclass(frozen=True)
class FormatOptions:
    """What the parsers need to know.

    Attributes:
        text_field: name of the JSON field that holds a document.
        max_bytes: size of the largest document.
    """

    text_field: str
    max_bytes: int

    @property
    def too_long(self):
        """The problem of a document that is larger than `max_bytes`."""
        return Problem(
            f"The document has more than {self.max_bytes:,} bytes. Separate documents with blank "
            "lines (or give one per JSON line), or raise --max-document-bytes."
        )


def parse_text(lines, options):
    """Plain text: a blank line ends a document."""
    first, parts, size = 1, [], 0
    for number, line in lines:
        if not line.strip():
            if parts:
                yield first, _joined(parts, size, options)
            parts, size = [], 0
            continue
        if not parts:
            first = number
        size += len(line)
        parts.append(line if size <= options.max_bytes else b"")  # memory stays bounded
    if parts:
        yield first, _joined(parts, size, options)


def parse_jsonl(lines, options):
    """One JSON object per line, with the text in one field."""
    for number, line in lines:
        if len(line) > options.max_bytes:
            yield number, options.too_long
        elif line.strip():
            yield number, _field(line, options)


def parse_wikiextractor(lines, options):
    """What WikiExtractor writes: articles between `<doc ...>` and `</doc>`, or JSON lines."""
    first, parts, size = 0, [], 0
    for number, line in lines:
        stripped = line.strip()
        if not first and stripped.startswith(b"{"):
            yield from parse_jsonl([(number, line)], options)
        elif _OPENING.match(line):
            if first:
                yield first, _UNCLOSED
            first, parts, size = number, [], 0
        elif stripped == _CLOSING and first:
            yield first, _joined(parts, size, options)
            first = 0
        elif first:
            size += len(line)
            parts.append(line if size <= options.max_bytes else b"")
        elif stripped:
            yield number, Problem('The line is outside of <doc id="..." ...> and </doc>.')
    if first:
        yield first, _UNCLOSED


PARSERS = {"text": parse_text, "jsonl": parse_jsonl, "wikiextractor": parse_wikiextractor}


def decode(content):
    """Bytes to text, or the `Problem` with them."""
    if b"\0" in content:
        return Problem("There are NUL bytes: this is binary data or UTF-16. Convert it to UTF-8.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        return Problem(
            f"The text is not UTF-8 (byte 0x{content[error.start]:02x} after {error.start:,} bytes "
            "of the document). Convert the file, for instance with iconv."
        )


def _joined(parts, size, options):
    return options.too_long if size > options.max_bytes else decode(b"".join(parts))


def _field(line, options):
    text = decode(line)
    if isinstance(text, Problem):
        return text
    try:
        record = parse_json(text)
    except ValueError as error:
        return Problem(f"The line is not JSON ({error}).")
    if not isinstance(record, dict):
        return Problem(f"The line holds no JSON object but a {type(record).__name__}.")
    if options.text_field not in record:
        return Problem(
            f"The field {options.text_field!r} is missing (--text-field names it). The fields are "
            f"{sorted(record)[:8]}."
        )
    value = record[options.text_field]
    if not isinstance(value, str):
        return Problem(
            f"The field {options.text_field!r} must hold text, and holds a {type(value).__name__}."
        )
    if "\0" in value:
        return Problem("There are NUL characters in the text.")
    if not _is_unicode(value):
        return Problem("The text has half of a surrogate pair, which is no character.")
    return value


def _is_unicode(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
