"""Unicode clean-up, once, before anything counts, hashes or cuts the text."""

import re
import unicodedata

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Zs apart from the plain space, and the tab
_SPACES = re.compile("[\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"  # control characters
    "\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"  # soft hyphens, marks, BOM
    "\ufffd]"  # what a failed decoding left
)
_AROUND_LINE_ENDS = re.compile(" *\n[ \n]*")
_RUNS = re.compile("  +")


def clean_text(text):
    """Cleans a document; what is left is what a reader sees, spelled in one way.

    In this order:

    1. All kinds of line ends (CR, LF, VT, FF, NEL, U+2028, U+2029, ...) become LF.
    2. All other white space (tabs, no-break and wide spaces) becomes a space.
    3. Characters that show nothing are removed: control characters, soft hyphens, zero-width
       spaces, direction marks, byte-order marks; and U+FFFD. The zero-width joiners U+200C and
       U+200D are kept: in some scripts they change the word.
    4. Canonical composition (Unicode NFC).
    5. Runs of spaces become one; blank lines, and spaces at both ends of a line, go.

    Case and accents are kept. Cleaning twice is cleaning once.

    Args:
        text: a string.

    Example:
        >>> clean_text("Cafe\\u0301\\u00a0 au\\tlait\\r\\n\\r\\n\\u200bTwo ")
        'Café au lait\\nTwo'
    """
    text = _LINE_ENDS.sub("\n", text)
    text = _INVISIBLE.sub("", _SPACES.sub(" ", text))
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if "  " in text:
        text = _RUNS.sub(" ", text)
    if "\n" in text:
        text = _AROUND_LINE_ENDS.sub("\n", text)
    return text.strip(" \n")
