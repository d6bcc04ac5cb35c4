"""Classes of pairs from the lengths of their segments alone: what a model must be better than."""

import numpy as np

from keras_tupe.data.rows.pairs import segments

_CELLS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of each length
_ROWS_PER_READ = 4096


def length_baseline(rows, held_out, num_examples=100_000):
    """The accuracy on held-out pairs of the best classifier that knows two lengths.

    Training pairs are counted on a grid of the lengths of the first and of the second segment, with
    as many of each in every line of it, and each cell says the class that is more frequent there;
    of grids from 1 x 1, which is a constant answer, to 64 x 64 the best one on the held-out pairs
    is taken. That choice is made on what it is scored on, so a model has to beat a little more than
    lengths can tell.

    Args:
        rows: a `Rows` with a `MaskedPairs`, to count pairs of.
        held_out: another, all of whose evaluation examples are classified.
        num_examples: training examples to count, from the first on. Defaults to 100,000.

    Returns:
        Share of the held-out pairs, a float from 0.5 or thereabouts to 1.

    Example:
        >>> masking = keras_tupe.data.Masking(30, mask_id=4, pad_id=0, special_ids=(2, 3))
        >>> rule = keras_tupe.data.MaskedPairs(masking, end_id=3, kind="order")
        >>> pairs = np.array([[2, 7, 8, 9, 3, 6, 3]] * 40)  # the longer segment comes first
        >>> rows = keras_tupe.data.Rows(pairs, rule, batch_size=4, seed=1)
        >>> length_baseline(rows, rows, 100)
        1.0
    """
    sizes, classes = _known(rows, rows.row_numbers_of, num_examples)
    wanted, answers = _known(held_out, lambda examples: examples, len(held_out))
    return max(_accuracy(sizes, classes, wanted, answers, cells) for cells in _CELLS)


def _known(rows, numbers_of, num_examples):
    """The two lengths of examples, `(n, 2)`, and their classes, `(n,)`."""
    sizes, classes = [], []
    for first in range(0, num_examples, _ROWS_PER_READ):
        examples = np.arange(first, min(first + _ROWS_PER_READ, num_examples))
        pairs = rows.rule.read(rows.source, numbers_of(examples), examples, rows.seed)
        spans = segments(pairs, rows.rule.end_id)
        sizes.append(np.stack([end - start for start, end in (span.T for span in spans)], axis=1))
        classes.append(rows.rule.pair_labels(examples, rows.seed))
    return np.concatenate(sizes), np.concatenate(classes)


def _accuracy(sizes, classes, wanted, answers, cells):
    """The share of right answers of a grid of `cells` x `cells`."""
    bounds = np.quantile(sizes, np.arange(1, cells) / cells, axis=0)  # (cells - 1, 2)
    grid = np.zeros((cells, cells))
    np.add.at(grid, _cell(sizes, bounds), 2 * classes - 1)
    return float(((grid[_cell(wanted, bounds)] > 0) == answers).mean())


def _cell(sizes, bounds):
    return tuple(
        np.searchsorted(bounds[:, which], sizes[:, which], side="right") for which in (0, 1)
    )
