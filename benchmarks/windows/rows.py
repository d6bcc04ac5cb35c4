"""The text that every system trains on. NumPy only: the peer's environment has no Keras."""

import math

import numpy as np

FIRST_WORD, MASKED, DROPOUT, LEARNING_RATE = 5, 0.15, 0.1, 1e-4
WARM_UP_STEPS = 2


def one_text(vocabulary_size, length):
    """Returns token ids, the masked positions and their labels, each `(1, ...)`, always the same.

    Args:
        vocabulary_size: number of tokens known.
        length: tokens of the text.
    """
    generator = np.random.default_rng(0)
    token_ids = generator.integers(FIRST_WORD, vocabulary_size, (1, length), "int32")
    count = math.ceil(MASKED * length)
    positions = np.sort(generator.permutation(length)[:count])[None].astype("int32")
    return token_ids, positions, np.take_along_axis(token_ids, positions, axis=1)
