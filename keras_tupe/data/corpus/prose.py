"""English paragraphs out of docstrings: code, tables, headings and signatures are dropped."""

import inspect
import re

_FENCE = re.compile(r"^\s*(```|~~~)")
_DOCTEST = re.compile(r"^\s*>>>")
_DIRECTIVE = re.compile(r"^\s*\.\. +[\w-]+::")
_CODE_DIRECTIVE = re.compile(
    r"^\s*\.\. +(code|code-block|sourcecode|parsed-literal|math|plot|table|list-table|csv-table"
    r"|image|figure|ipython|doctest|testcode|testsetup|productionlist|index|currentmodule|autosummary"
    r"|_[^:]*)(:|$)"
)
_FENCE_MARKS, _UNDERLINE_MARKS = frozenset("`~"), frozenset("-=~^*#+\"'`.")
_UNDERLINE = re.compile(r"^\s*([-=~^*#+\"'`.])\1{2,}\s*$")
_TABLE = re.compile(r"\|.*\||^\s*\+[-=+]+\+\s*$|(={3,}|-{3,})\s+(={3,}|-{3,})")
_NUMPY_PARAMETER = re.compile(r"^\s*[\w*.][\w*., ]*\s:(\s|$)")
_BULLET = re.compile(r"^\s*(?:[-*+\u2022]|\(?\d{1,2}[.)]|#\.)\s+")
_FIELD = re.compile(r"^\s*:(?:param|arg|type|key|exc|rais|return|rtype|i?var)[^:`]*:\s+")
_ENTRY = re.compile(r"^\s*[*`\"']{0,3}[\w.\[\]*, ]{1,40}[*`\"']{0,3}(?: \([^()]*\))?:\s+")
_HEADING = re.compile(r"^\s*[#*]*\s*[A-Z][\w ]{0,30}:[*]*\s*$")

_ROLE = re.compile(r":[\w:.+-]+:`~?!?\.?([^`<]*?)(?:\s*<[^`>]*>)?`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|`([^`<]+) <[^`>]*>`__?")
_FOOTNOTE = re.compile(r"\s*\[(?:#?\d+|\w+\d{4}\w?)\]_?")
_ADDRESS = re.compile(r"<?\b(?:https?|ftp)://[^\s>)]*[^\s>).,;:]>?")
_MARKUP = re.compile(r"(?<!\w)`+[~!]?\.?(?=\w)|`+|(?<!\w)\*+(?=\w)|(?<=\w)\*+(?!\w)|\\[(\[\])]")
_WORD = re.compile(
    r"[(\"'\u201c\u2018]*[A-Za-z]+(?:['\u2019/-][A-Za-z]+)*[)\"'\u201d\u2019]*[.,;:!?]*[)\"']*"
)
_COMMON_WORDS = """
a all an and any are as at be but by can each for from has have if in into is it its may must no not
of on only or should so such than that the their then these they this to used using was when where
whether which will with you
"""
_COMMON = frozenset(_COMMON_WORDS.split())

_MIN_PARAGRAPH_WORDS = 6
_MIN_WORD_SHARE = 0.7
_MIN_COMMON_SHARE = 0.15


def prose_paragraphs(docstring):
    """Returns the paragraphs of a docstring that read as English sentences.

    Simple rules, in this order. Lines: fenced code, doctest examples up to the next blank line,
    reStructuredText literal blocks (after `::`) and code-like directives, tables, underlined
    titles and lines such as `Args:` are dropped; a bullet, a `name: text` entry or a numpy
    `name : type` line starts a paragraph, without its bullet or name. Inside a paragraph:
    addresses, footnote marks and inline markup go, a link or a role keeps its text, white space
    is one space. A paragraph stays if it has at least 6 words, of which at least 70 % are letters
    only and 15 % are common English function words; this drops code that no
    mark announces. A paragraph without a final stop is given one.

    Args:
        docstring: text as written in the source, indentation included.

    Returns:
        A list of strings without line breaks.

    Example:
        >>> prose_paragraphs('''Returns the sum of the two numbers in a list.
        ...
        ...     Args:
        ...         first: The number that is to be added to the second.
        ...
        ...     >>> add(1, 2)
        ...     3
        ... ''')
        ['Returns the sum of the two numbers in a list.',
         'The number that is to be added to the second.']
    """
    blocks = _blocks(_text_lines(inspect.cleandoc(docstring).splitlines()))
    return [paragraph for paragraph in map(_clean, blocks) if _is_prose(paragraph)]


def _text_lines(lines):
    """Yields the lines that are not code, table or title; an empty line where something went."""
    fenced = in_doctest = False
    code_indent = None  # lines indented deeper than this belong to a literal block
    for index, line in enumerate(lines):
        text = line.lstrip()
        indent, mark = len(line) - len(text), text[:1]  # patterns are tried where they can match
        if mark in _FENCE_MARKS and _FENCE.match(line):
            fenced = not fenced
            yield ""
            continue
        if fenced or not text:
            in_doctest = False
            yield ""
            continue
        if code_indent is not None:
            if indent > code_indent:
                continue
            code_indent = None
        in_doctest = in_doctest or (mark == ">" and bool(_DOCTEST.match(line)))
        underlined = index + 1 < len(lines) and _is_underline(lines[index + 1])
        if mark == "." and _CODE_DIRECTIVE.match(line):
            code_indent = indent
            yield ""
        elif in_doctest or underlined or _is_furniture(line):
            yield ""
        elif line.rstrip().endswith("::"):
            code_indent = indent
            yield line.rstrip()[:-1]
        else:
            yield line


def _is_underline(line):
    return line.lstrip()[:1] in _UNDERLINE_MARKS and bool(_UNDERLINE.match(line))


def _is_furniture(line):
    if ":" in line and (
        _DIRECTIVE.match(line) or _HEADING.match(line) or _NUMPY_PARAMETER.match(line)
    ):
        return True
    may_be_table = "|" in line or "---" in line or "===" in line or "+" in line
    return _is_underline(line) or (may_be_table and bool(_TABLE.search(line)))


def _blocks(lines):
    """Yields each paragraph as one string: split at blank lines, list items and outdents."""
    block, last_indent = [], 0
    for line in lines:
        text = line.strip()
        if not text:
            if block:
                yield " ".join(block)
                block = []
            continue
        indent = line.find(text)
        mark = None if text[0].isalpha() else _BULLET.match(line) or _FIELD.match(line)
        entry = _ENTRY.match(line) if ":" in text else None
        outdent = indent < last_indent and block and block[-1].endswith((".", ":", "!", "?", ")"))
        if block and (mark or outdent or (indent > 0 and entry)):
            yield " ".join(block)
            block = []
        if mark:
            text = line[mark.end() :].strip()
        elif entry and not block:
            text = line[entry.end() :].strip()
        if text:
            block.append(text)
            last_indent = indent
    if block:
        yield " ".join(block)


def _clean(paragraph):
    if ":`" in paragraph:
        paragraph = _ROLE.sub(lambda match: match[1].rsplit(".", 1)[-1] or match[1], paragraph)
    if "[" in paragraph or "`" in paragraph:
        paragraph = _LINK.sub(lambda match: match[1] or match[2] or "", paragraph)
        paragraph = _FOOTNOTE.sub("", paragraph)
    if "://" in paragraph:
        paragraph = _ADDRESS.sub("", paragraph)
    if "`" in paragraph or "*" in paragraph or "\\" in paragraph:
        paragraph = _MARKUP.sub("", paragraph)
    paragraph = " ".join(paragraph.split())
    return paragraph if paragraph.endswith((".", "!", "?", ":", '."', ".)")) else paragraph + "."


def _is_prose(paragraph):
    words = paragraph.split()
    if len(words) < _MIN_PARAGRAPH_WORDS:
        return False
    common = sum(word.lower().strip("(\"'.,;:)") in _COMMON for word in words)
    if common < _MIN_COMMON_SHARE * len(words):
        return False
    plain = sum(_is_plain(word) for word in words)
    return plain >= _MIN_WORD_SHARE * len(words)


def _is_plain(word):
    return (word.isalpha() and word.isascii()) or bool(_WORD.fullmatch(word))
