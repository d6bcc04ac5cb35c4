"""Docstrings in Google's style: read into sections, and written as Markdown."""

import dataclasses
import inspect
import re

# Sections, with what they are called on a page. The first have items: `name: what it is`.
_ITEMS = {
    "Args": "Arguments",
    "Call arguments": "Call arguments",
    "Attributes": "Attributes",
    "Raises": "Errors",
}
_TEXTS = {
    "Returns": "Returns",
    "Yields": "Yields",
    "Notes": "Notes",
    "Example": "Example",
    "References": "References",
}
_LEAD = re.compile(r"(Equations?|Masking|Differences from [\w ]+|Sources?)(?=[ :,])")
_ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: (.*))?$")
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_URL = re.compile(r"https?://[^\s<>)]*[^\s<>).,;]")
_BOLD = re.compile(r"(?<!\S)\*\*(?=\S)([^*]+)(?<=\S)\*\*(?!\w)")


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a docstring.

    Attributes:
        title: as in the docstring, such as `"Args"`; `""` for text outside of sections.
        lines: its lines, without the indentation that all share; none for items.
        items: list of `(names, lines)`, with a tuple of names.
    """

    title: str
    lines: list = dataclasses.field(default_factory=list)
    items: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Docstring:
    """What a docstring says.

    Attributes:
        summary: its first sentence, which is its first line.
        sections: list of `Section`.
    """

    summary: str
    sections: list

    def names(self, *titles):
        """Returns the names of the items of some sections, a set."""
        return {
            name
            for section in self.sections
            if section.title in titles
            for names, _ in section.items
            for name in names
        }

    def titles(self):
        """Returns the titles of all sections, a set."""
        return {section.title for section in self.sections}


def parse(text):
    """Returns the `Docstring` of a text as it stands in the source.

    Example:
        >>> found = parse("Adds.\\n\\nArgs:\\n    x, y: numbers.")
        >>> found.summary, found.names("Args") == {"x", "y"}
        ('Adds.', True)
    """
    lines = inspect.cleandoc(text).splitlines()
    sections, rest = [], []
    at = 1
    while at < len(lines):
        title = lines[at].removesuffix(":")
        if lines[at].endswith(":") and title in {**_ITEMS, **_TEXTS}:
            if any(rest):
                sections.append(Section("", rest))
            end = _end_of_block(lines, at + 1)
            content = _dedented(lines[at + 1 : end])
            if title in _ITEMS:
                sections.append(Section(title, items=_items(content)))
            else:
                sections.append(Section(title, content))
            rest, at = [], end
        else:
            rest.append(lines[at])
            at += 1
    if any(rest):
        sections.append(Section("", rest))
    return Docstring(lines[0] if lines else "", sections)


def _end_of_block(lines, start):
    """Returns the number of the first line from `start` on that is not indented."""
    return next(
        (at for at in range(start, len(lines)) if lines[at] and lines[at][0] != " "), len(lines)
    )


def _dedented(lines):
    return inspect.cleandoc("\n" + "\n".join(lines)).splitlines()


def _items(lines):
    found = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            found.append((tuple(item[1].split(", ")), [item[2] or ""]))
        elif found:
            found[-1][1].append(line)
    return [(names, [first[0], *_dedented(first[1:])]) for names, first in found]


def markdown(docstring, link, titles=None):
    """Returns the text below the summary.

    Args:
        docstring: a `Docstring`.
        link: function of what stands between backticks; returns Markdown.
        titles: the sections to write; all by default.
    """
    parts = []
    for section in docstring.sections:
        if titles is not None and section.title not in titles:
            continue
        if section.title:
            parts.append(f"```{{rubric}} {({**_ITEMS, **_TEXTS})[section.title]}\n```")
        if section.title == "References":
            parts.append(_references(section.lines, link))
        elif section.title in _ITEMS:
            parts += [_definition(names, lines, link) for names, lines in section.items]
        else:
            parts.append(blocks(section.lines, link))
    return "\n\n".join(parts)


def _definition(names, lines, link):
    text = blocks(lines, link).replace("\n", "\n  ")
    return f"{', '.join(f'`{name}`' for name in names)}\n: {text}".replace("\n  \n", "\n\n")


def _references(lines, link):
    """Returns a list; a reference ends with the line of its address, or of a full stop."""
    found, open_ = [], False
    for line in filter(None, lines):
        if open_:
            found[-1] += f" {line}"
        else:
            found.append(line)
        open_ = not _URL.search(line.split()[-1])
    return "\n".join(f"- {inline(one, link)}" for one in found)


def blocks(lines, link):
    """Returns lines of a docstring as Markdown: paragraphs, lists, equations, examples."""
    found, at = [], 0
    while at < len(lines):
        end = next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
        block = lines[at:end]
        if not block:
            at += 1
        elif block[0].startswith("    "):
            last = end
            while last < len(lines) and (not lines[last] or lines[last].startswith("    ")):
                last += 1
            body = "\n".join(_dedented(lines[at:last])).rstrip()
            found.append(f"```text\n{body}\n```")
            at = last
        elif block[0].startswith(">>> "):
            found.append("\n".join(["```pycon", *block, "```"]))
            at = end
        else:
            found += _paragraphs(block, link)
            at = end
    return "\n\n".join(found)


def _paragraphs(lines, link):
    """Returns a paragraph, and the list that follows its last line."""
    groups = [[]]
    for line in lines:
        if line.startswith("- "):
            groups.append([line[2:]])
        else:
            groups[-1].append(line.strip())
    found = [inline(" ".join(groups[0]), link)] if groups[0] else []
    if len(groups) > 1:
        found.append("\n".join(f"- {inline(' '.join(group), link)}" for group in groups[1:]))
    return found


def inline(text, link):
    """Returns text in one line as Markdown: code is linked, and all else means itself.

    Example:
        >>> inline("[CLS] of `x`, a_i", lambda code: f"*{code}*")
        '\\\\[CLS\\\\] of *x*, a\\\\_i'
    """
    found, at = [], 0
    for code in _CODE.finditer(text):
        found += [_plain(text[at : code.start()]), link(" ".join(code[2].split()))]
        at = code.end()
    joined = "".join([*found, _plain(text[at:])])
    joined = _LEAD.sub(r"**\1**", joined, count=1) if _LEAD.match(joined) else joined
    return re.sub(r"^([-+#>]|\d+[.)])(?= )", r"\\\1", joined)


def _plain(text):
    """Returns text without code; bold text and addresses stay what they are."""
    parts, at = [], 0
    marks = sorted([*_BOLD.finditer(text), *_URL.finditer(text)], key=lambda mark: mark.start())
    for mark in marks:
        is_url = mark[0].startswith("http")
        parts += [_escaped(text[at : mark.start()])]
        parts += [f"<{mark[0]}>" if is_url else f"**{_escaped(mark[1])}**"]
        at = mark.end()
    return "".join([*parts, _escaped(text[at:])])


def _escaped(text):
    return re.sub(r"([\\`*_{}\[\]<>$|~&])", r"\\\1", text)
