"""Rows to batches: random access by step, so that a run starts or resumes anywhere."""

import operator

import numpy as np

from keras_tupe.data.rows.checks import check_rows
from keras_tupe.data.rows.counter_rng import check_seed, permute
from keras_tupe.data.rows.shared_batches import SharedBatches


class Rows(SharedBatches):
    """Training and evaluation batches of a language model, from packed rows.

    Example number e (from 0, over all epochs) is row order(seed, e // rows)[e % rows], masked, say,
    by (seed, e); batch number `step` holds the examples from step * batch_size on. So each epoch is
    a new order with new masks, nothing depends on the batches before, and no step costs more
    time or memory than another, whatever the number of rows.

    Args:
        source: where the rows are: integers, `(rows, length)`, such as `pack_rows` makes; or an
            object that reads them when they are asked for, such as `PreparedRows`: with `len`, an
            attribute `length` (tokens per row), and an array of integers as index, which gives
            the rows of these numbers, `(n, length)`.
        rule: how rows become inputs, labels and weights: a `Masking`, a `NextTokens`, or another
            object with `vocabulary_size`, `pad_id` and a method `examples` such as theirs. A rule
            that puts several rows together, such as `MaskedPairs`, also has a method `read`, which
            gives the rows of examples instead of the source.
        batch_size: rows per batch, at least 1.
        seed: integer from 0 to 2**64 - 1.

    Attributes:
        length: tokens per row.
        num_evaluation_batches: how many batches `evaluation_batches` yields.

    Raises:
        TypeError: if the ids are not integers.
        ValueError: if an id of an array is outside the vocabulary, `batch_size` is below 1, or
            there is no row.

    Example:
        >>> from keras_tupe.data.rows.masking import Masking
        >>> masking = Masking(vocabulary_size=30, mask_id=4, pad_id=0, special_ids=(1, 2, 3))
        >>> rows = Rows(np.arange(5, 29).reshape(3, 8), masking, batch_size=2, seed=1)
        >>> inputs, labels, weights = rows.batch(1000)
        >>> inputs["token_ids"].shape, inputs["mask_positions"].shape, labels.shape, weights.shape
        ((2, 8), (2, 2), (2, 2), (2, 2))
    """

    def __init__(self, source, rule, *, batch_size, seed):
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
        if not hasattr(source, "length"):  # an array: all of it is checked at once
            source = check_rows(source, rule.vocabulary_size)
        elif not len(source):
            raise ValueError(f"`source` must have at least one row. Received: {source!r}")
        self.source = source
        self.rule = rule
        self.batch_size = batch_size
        self.seed = check_seed(seed)
        self.length = getattr(source, "length", None) or source.shape[1]
        self._stride = batch_size  # rows of the batch of all workers

    def __len__(self):
        """Number of rows."""
        return len(self.source)

    @property
    def num_evaluation_batches(self):
        """The same for every worker."""
        return -(-len(self) // self._stride)

    def batch(self, step):
        """Batch number `step` of training.

        Args:
            step: integer >= 0; any, in any order.

        Returns:
            `(inputs, labels, weights)` as the rule's `examples` gives them, of `batch_size` rows.
        """
        examples = self._examples(step)
        rows = self._read(self.row_numbers(step), examples)
        return self.rule.examples(rows, examples, self.seed)

    def row_numbers(self, step):
        """Numbers of the rows of `batch(step)`, int64 `(batch_size,)`."""
        return self.row_numbers_of(self._examples(step))

    def row_numbers_of(self, examples):
        """Numbers of the rows of training examples, int64 `(n,)`.

        Args:
            examples: integers >= 0, `(n,)`.
        """
        epochs, places = np.divmod(examples, len(self))
        return permute(self.seed, "rows: order", epochs, places, len(self))

    def batches(self, start_step=0):
        """Yields `batch(start_step)`, `batch(start_step + 1)`, ... without end."""
        step = start_step
        while True:
            yield self.batch(step)
            step += 1

    def evaluation_batch(self, step):
        """Batch number `step` of `evaluation_batches`, from 0 to `num_evaluation_batches - 1`."""
        examples = self._examples(step)
        if step >= self.num_evaluation_batches:
            raise ValueError(
                f"`step` must be below the number of evaluation batches, "
                f"{self.num_evaluation_batches}. Received: step={step}"
            )
        token_ids = np.full((len(examples), self.length), self.rule.pad_id, "int32")
        indices = examples[examples < len(self)]
        if len(indices):
            token_ids[: len(indices)] = self._read(indices, indices)
        return self.rule.examples(token_ids, examples, self.seed)

    def evaluation_batches(self):
        """Yields every row once, in order, by (seed, row number): the same at each call.

        The last batch is filled up with rows of padding, of weight 0: shapes stay static, and
        every worker has the same number of batches, so that none waits for another.
        """
        for step in range(self.num_evaluation_batches):
            yield self.evaluation_batch(step)

    def _read(self, numbers, examples):
        """The rows of some examples, by their numbers; the rule may put several together."""
        if hasattr(self.rule, "read"):
            return self.rule.read(self.source, numbers, examples, self.seed)
        return self.source[numbers]

    def _examples(self, step):
        """Numbers of the examples of a batch, ascending: int64 `(batch_size,)`."""
        first = operator.index(step) * self._stride + self._offset
        if step < 0:
            raise ValueError(f"`step` must be at least 0. Received: step={step}")
        return np.arange(first, first + self.batch_size)
