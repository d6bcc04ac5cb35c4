"""Token ids are checked once, at the door, and so are the numbers of examples."""

import numpy as np

from keras_tupe.data.rows.counter_rng import POSITION_BITS


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


def check_example_numbers(example_numbers, shape):
    """Returns the numbers of the examples of rows, one >= 0 for each, as an integer array."""
    numbers = np.asarray(example_numbers)
    if not np.issubdtype(numbers.dtype, np.integer):
        raise TypeError(
            f"`example_numbers` must be integers. Received: example_numbers.dtype={numbers.dtype}"
        )
    if numbers.shape != shape[:1] or numbers.min() < 0:
        raise ValueError(
            "`example_numbers` must have one number >= 0 per row. Received: "
            f"example_numbers.shape={numbers.shape}, smallest={numbers.min(initial=0)}, "
            f"token_ids.shape={shape}"
        )
    if shape[1] > 2**POSITION_BITS:
        raise ValueError(
            f"Rows must have at most 2**{POSITION_BITS} tokens. Received: token_ids.shape={shape}"
        )
    return numbers
