"""Answers of SQuAD, reduced to what counts in them."""

import re
import string

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")


def normalize_answer(text):
    """Returns an answer as SQuAD v1.1's official scorer compares it.

    In this order: lower case; the 32 punctuation characters of ASCII dropped, nothing put in
    their place ("U.S." becomes "us", "well-known" "wellknown"); the words a, an and the dropped;
    words joined by single spaces. Punctuation beyond ASCII stays, as do full-width characters and
    accents; their spaces, such as U+00A0 and U+3000, count as white space.

    Args:
        text: string.

    Returns:
        String, possibly empty.

    Raises:
        TypeError: if `text` is no string.

    Example:
        >>> normalize_answer(" The  U.S. Army's band, a-ha!")
        'us armys band aha'

    References:
        Rajpurkar et al. SQuAD: 100,000+ Questions for Machine Comprehension of Text. EMNLP 2016,
        section 6.1, and the scorer at https://rajpurkar.github.io/SQuAD-explorer/
    """
    if not isinstance(text, str):
        raise TypeError(
            f"An answer must be a string. Received: answer of type {type(text).__name__}"
        )
    text = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", text).split())
