"""Token ids are checked once, at the door."""

import numpy as np


def check_rows(token_ids, vocabulary_size):
    """Returns `token_ids` as an integer array of rows, all of them inside the vocabulary.

    Args:
        token_ids: integers, `(rows, length)`.
        vocabulary_size: the ids must be from 0 to `vocabulary_size - 1`.

    Returns:
        The same array, not copied if it is one already.

    Raises:
        TypeError: if the ids are not integers.
        ValueError: if there are not two axes, or an id is outside the vocabulary; the message
            names the first one in reading order.
    """
    rows = np.asarray(token_ids)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(
            "`token_ids` must have the shape (rows, length), neither of them 0. "
            f"Received: token_ids.shape={rows.shape}"
        )
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"`token_ids` must be integers. Received: token_ids.dtype={rows.dtype}")
    if rows.min() < 0 or rows.max() >= vocabulary_size:
        row, column = np.argwhere((rows < 0) | (rows >= vocabulary_size))[0]
        raise ValueError(
            f"`token_ids` must be from 0 to {vocabulary_size - 1}; was another vocabulary used to "
            f"make these rows? Received: token_ids[{row}, {column}]={rows[row, column]}"
        )
    return rows
