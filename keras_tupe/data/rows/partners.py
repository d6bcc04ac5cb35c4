"""Which row another one gets its second segment from, so that lengths tell nothing."""

import functools

import numpy as np

from keras_tupe.data.rows.counter_rng import random_below, random_bits


class Partners:
    """Rows of pairs, by the length of their second segment and by document.

    The partner of row r is drawn, uniformly, from the rows of other documents whose second segment
    has as many tokens as that of r:

        partner(r) in {q : b_q = b_r, document_q != document_r}

    So a pair with its partner's second segment has the two lengths of the pair that was written,
    and fits; nothing can be told from lengths. Where no other document has a second segment of
    that many tokens, the nearest number is taken that another one has; what does not fit of it is
    cut off by whoever puts the two together.

    Args:
        second_sizes: integers >= 1, `(rows,)`: tokens of the second segment of each row.
        documents: integers >= 0, `(rows,)`: number of the document each row is of.

    Attributes:
        num_inexact: rows whose partner has a second segment of another length.

    Raises:
        ValueError: if there is one document only, so that no row has a partner.

    Example:
        >>> partners = Partners(np.array([7, 7, 7, 9]), np.array([0, 0, 1, 1]))
        >>> partners.chosen(np.array([0, 1, 2]), np.array([0, 1, 2]), seed=1)[:2].tolist()
        [2, 2]
    """

    def __init__(self, second_sizes, documents):
        sizes, documents = np.asarray(second_sizes, "int64"), np.asarray(documents, "int64")
        if not len(documents) or (documents == documents[0]).all():
            raise ValueError(
                "A random second segment is one of another document, so there must be pairs of two "
                "documents at least. Give more text, or hold more of it out. Received: "
                f"{len(np.unique(documents))} document(s), {len(documents)} rows"
            )
        self._stride = int(documents.max()) + 1
        self._sizes, self._documents = sizes, documents
        keys = sizes * self._stride + documents
        self._order = np.argsort(keys, kind="stable")  # by size, and then by document
        self._keys = keys[self._order]
        self.num_inexact = int((self._taken[sizes] != sizes).sum())

    def chosen(self, numbers, example_numbers, seed):
        """Draws the partners of rows.

        Args:
            numbers: integers, `(n,)`: the rows.
            example_numbers: integers >= 0, `(n,)`, so that a row has another one in every epoch.
            seed: integer from 0 to 2**64 - 1.

        Returns:
            Numbers of rows, int64 `(n,)`: pure functions of row, example number and seed.
        """
        documents = self._documents[numbers]
        first, end = self._rows_of(self._taken[self._sizes[numbers]])
        key = self._taken[self._sizes[numbers]] * self._stride + documents
        own_first = np.searchsorted(self._keys, key)
        own = np.searchsorted(self._keys, key, side="right") - own_first  # of the same document
        bits = random_bits(seed, "pairs: partner", example_numbers)
        drawn = first + random_below(bits, end - first - own)
        return self._order[np.where(drawn >= own_first, drawn + own, drawn)]

    def _rows_of(self, sizes):
        """Where the rows with second segments of these sizes begin and end in their order."""
        return tuple(np.searchsorted(self._keys, key * self._stride) for key in (sizes, sizes + 1))

    @functools.cached_property
    def _taken(self):
        """From what size the partner of a row is, for each size: int64, `(largest size + 1,)`."""
        found = np.unique(self._sizes)
        first, end = self._rows_of(found)
        lowest, highest = (self._keys[index] % self._stride for index in (first, end - 1))
        taken = np.zeros(int(found[-1]) + 1, "int64")
        taken[found] = found
        for alone in np.flatnonzero(lowest == highest):  # all rows of this size: one document's
            others = (lowest != lowest[alone]) | (highest != lowest[alone])
            nearest = np.argmin(
                np.where(others, np.abs(found - found[alone]), np.iinfo("int64").max)
            )
            taken[found[alone]] = found[nearest]
        return taken
