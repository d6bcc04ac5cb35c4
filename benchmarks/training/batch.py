"""The batch that every system trains on. NumPy only, since the peer's environment has no Keras."""

import math

import numpy as np

FIRST_WORD = 5  # ids below are special tokens
MASKED = 0.15
LEARNING_RATE = 1e-4
DROPOUT = 0.1
WARM_UP_STEPS = 4  # of a new process, not timed


def num_slots(length):
    """Returns the number of masked tokens of a row."""
    return math.ceil(MASKED * length)


def batch(vocabulary_size, batch_size, length):
    """Returns one batch of random rows, always the same, without padding.

    Returns:
        `(token_ids, mask_positions, labels, weights)`: `(batch_size, length)`, then three of
        `(batch_size, num_slots(length))`; int32, weights float32, all 1.
    """
    generator = np.random.default_rng(0)
    token_ids = generator.integers(FIRST_WORD, vocabulary_size, (batch_size, length), "int32")
    positions = generator.random(token_ids.shape).argsort(axis=1)[:, : num_slots(length)]
    mask_positions = np.sort(positions, axis=1).astype("int32")
    labels = np.take_along_axis(token_ids, mask_positions, axis=1)
    return token_ids, mask_positions, labels, np.ones(labels.shape, "float32")


def keras_batch(job):
    """Returns the batch of a job as Keras takes it: a dictionary of inputs, labels, weights.

    Args:
        job: dictionary with `vocabulary_size`, `batch_size` and `length`.
    """
    arrays = batch(job["vocabulary_size"], job["batch_size"], job["length"])
    token_ids, mask_positions, labels, weights = arrays
    inputs = {
        "token_ids": token_ids,
        "padding_mask": np.ones_like(token_ids),
        "mask_positions": mask_positions,
    }
    return inputs, labels, weights
