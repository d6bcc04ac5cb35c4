"""How often each word occurs: all that a vocabulary is trained on, and it can be added up."""

import collections

_WORDS_PER_FLUSH = 4_000_000


class WordCounts:
    """Counts the words of documents, as the trainers of vocabularies want them.

    A word of the raw text stands between white space. `split_word` then says how the trainer sees
    it, as a list of words (`"Stop,"` -> `["stop", ","]`); it is asked once for some millions of
    words, and only what it answers is kept, so memory grows with the number of different words
    alone. Counts of parts of a corpus add up to the counts of the whole, in any order.

    Args:
        split_word: function of a string that returns a list of strings; `None` keeps raw words.

    Example:
        >>> counts = WordCounts(lambda word: [word.lower()])
        >>> counts.add("To be or not to be")
        >>> dict(counts.total())
        {'to': 2, 'be': 2, 'or': 1, 'not': 1}
    """

    def __init__(self, split_word=None):
        self._split_word = split_word
        self._raw = collections.Counter()
        self._pending = 0
        self._total = collections.Counter()

    def add(self, document):
        """Counts the words of one document.

        Args:
            document: a string.
        """
        words = document.split()
        self._raw.update(words)
        self._pending += len(words)
        if self._pending >= _WORDS_PER_FLUSH:
            self._flush()

    def total(self):
        """Returns the `collections.Counter` of all words so far."""
        self._flush()
        return self._total

    def _flush(self):
        if self._split_word is None:
            self._total.update(self._raw)
        else:
            for word, count in self._raw.items():
                for part in self._split_word(word):
                    self._total[part] += count
        self._raw.clear()
        self._pending = 0
