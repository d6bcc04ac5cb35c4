"""Rows to batches: random access by step, so that a run starts or resumes anywhere."""

import operator

import numpy as np

from keras_tupe.data.checks import check_rows
from keras_tupe.data.counter_rng import check_seed, permutation
from keras_tupe.data.masking import mask_rows

_ORDER = 0  # stream of random bits; `masking` uses the others


class Rows:
    """Training and evaluation batches of a masked language model, from packed rows.

    Example number e (from 0, over all epochs) is row order(seed, e // rows)[e % rows], masked by
    (seed, e); batch number `step` holds the examples from step * batch_size on. So each epoch is
    a new order with new masks, and nothing depends on the batches before.

    Args:
        token_ids: integers, `(rows, length)`, such as `pack_rows` makes.
        masking: a `Masking`.
        batch_size: rows per batch, at least 1.
        seed: integer from 0 to 2**64 - 1.

    Raises:
        TypeError: if the ids are not integers.
        ValueError: if an id is outside the vocabulary, or `batch_size` is below 1.

    Example:
        >>> from keras_tupe.data.masking import Masking
        >>> masking = Masking(vocabulary_size=30, mask_id=4, pad_id=0, special_ids=(1, 2, 3))
        >>> rows = Rows(np.arange(5, 29).reshape(3, 8), masking, batch_size=2, seed=1)
        >>> inputs, labels, weights = rows.batch(1000)
        >>> inputs["token_ids"].shape, inputs["mask_positions"].shape, labels.shape, weights.shape
        ((2, 8), (2, 2), (2, 2), (2, 2))
    """

    def __init__(self, token_ids, masking, *, batch_size, seed):
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
        self.token_ids = check_rows(token_ids, masking.vocabulary_size)
        self.masking = masking
        self.batch_size = batch_size
        self.seed = check_seed(seed)
        self._orders = {}  # of the last two epochs asked for: a batch may reach into the next

    def __len__(self):
        """Number of rows."""
        return len(self.token_ids)

    def batch(self, step):
        """Batch number `step` of training.

        Args:
            step: integer >= 0; any, in any order.

        Returns:
            `(inputs, labels, weights)` as `mask_rows` gives them, of `batch_size` rows.
        """
        first = operator.index(step) * self.batch_size
        if first < 0:
            raise ValueError(f"`step` must be at least 0. Received: step={step}")
        examples = np.arange(first, first + self.batch_size)
        epochs, places = np.divmod(examples, len(self))
        indices = np.concatenate(
            [self._order(int(epoch))[places[epochs == epoch]] for epoch in np.unique(epochs)]
        )
        return mask_rows(self.token_ids[indices], examples, self.masking, seed=self.seed)

    def batches(self, start_step=0):
        """Yields `batch(start_step)`, `batch(start_step + 1)`, ... without end."""
        step = start_step
        while True:
            yield self.batch(step)
            step += 1

    def evaluation_batches(self):
        """Yields every row once, in order, masked by (seed, row number): the same at each call.

        The last batch is filled up with rows of padding, of weight 0: shapes stay static.
        """
        for first in range(0, len(self), self.batch_size):
            token_ids = self.token_ids[first : first + self.batch_size]
            missing = self.batch_size - len(token_ids)
            token_ids = np.pad(
                token_ids, ((0, missing), (0, 0)), constant_values=self.masking.pad_id
            )
            examples = np.arange(first, first + self.batch_size)
            yield mask_rows(token_ids, examples, self.masking, seed=self.seed)

    def _order(self, epoch):
        orders = self._orders
        if epoch not in orders:
            order = permutation(self.seed, _ORDER, epoch, len(self))
            # a new dictionary: other threads may be reading the old one
            self._orders = orders = {**dict(list(orders.items())[-1:]), epoch: order}
        return orders[epoch]
