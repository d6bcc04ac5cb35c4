"""Documents to sentences, by one rule without a model."""

import re

_CLOSERS = "[\"')\\]\u2019\u201d]*"
_OPENERS = "[\"'(\\[\u2018\u201c]*"
_BOUNDARY = re.compile(
    rf"(?<=[.!?]){_CLOSERS}\s+(?={_OPENERS}[A-Z0-9\u00c0-\u00de])"
    rf"|(?<=[.!?:;]){_CLOSERS}[ \t]*\n\s*"
)
_ABBREVIATION_LIST = """
mr. mrs. ms. dr. prof. st. jr. sr. gen. col. capt. lt. rev. hon. sen. rep. gov. vol. fig. figs. eq.
eqs. sec. ch. p. pp. e.g. i.e. cf. vs. viz. al. approx. ca. c. resp. jan. feb. mar. apr. jun. jul.
aug. sep. sept. oct. nov. dec.
"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_INITIAL = re.compile(r"[A-Z]\.")


def split_sentences(document):
    """Splits a document into sentences.

    A sentence ends after `.`, `!` or `?` (and closing quotes or brackets) when white space and
    then a capital letter or a digit follow, unless the word before is a known abbreviation or a
    single initial; and at a line break after one of `. ! ? : ;`. Other line breaks count as
    spaces, so hard-wrapped text works as well as one paragraph per line.

    Args:
        document: a string.

    Returns:
        A list of strings, none of them empty, with single spaces as white space.

    Example:
        >>> split_sentences("It was Mr. Smith. He had 2.5 cats, e.g. Tom.")
        ['It was Mr. Smith.', 'He had 2.5 cats, e.g. Tom.']
    """
    sentences, start = [], 0
    for match in _BOUNDARY.finditer(document):
        word_start = max(document.rfind(space, start, match.start()) for space in " \n") + 1
        word = document[max(word_start, start) : match.start()].lstrip("\"'([\u2018\u201c")
        if word.lower() in _ABBREVIATIONS or _INITIAL.fullmatch(word):
            continue
        sentences.append(document[start : match.end()])
        start = match.end()
    sentences.append(document[start:])
    collapsed = (" ".join(sentence.split()) for sentence in sentences)
    return [sentence for sentence in collapsed if sentence]
