"""Rows of different lengths to batches that are hardly wider than their rows."""

import operator

import numpy as np

from keras_tupe.data.rows.counter_rng import check_seed, permute
from keras_tupe.data.rows.shared_batches import SharedBatches

WIDTHS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
_POOL = 50  # batches whose rows are sorted by length, once the rows are in random order


class BucketedRows(SharedBatches):
    """Training and evaluation batches for fine-tuning, from rows of different lengths.

    A batch is as wide as the first of a few widths that holds its longest row, so that a compiled
    step is compiled a few times only. Each epoch is a new random order of all rows; within pools of
    50 batches rows of like lengths come together, and the batches come in random order. An
    epoch has each row once: where rows are left over, one batch is filled up with rows of padding,
    of weight 0. Batch number `step`, over all epochs, depends on `seed` and `step` alone.

    Args:
        token_ids: list of integer arrays, `(row's length,)`, without padding, none empty.
        labels: array `(rows, ...)`, or `None` if there are none.
        pad_id: what fills a row up.
        batch_size: rows per batch, at least 1.
        seed: integer from 0 to 2**64 - 1.
        segment_ids: list of integer arrays as `token_ids`, or `None`: no such input.
        widths: widths of batches, tokens, ascending. Longer rows have one width more, that of the
            longest row, which no batch exceeds.

    Attributes:
        lengths: int64 `(rows,)`, tokens of each row.
        num_batches: batches of an epoch.
        num_evaluation_batches: batches that hold every row once.

    Raises:
        ValueError: if there is no row, a row is empty, or the arguments do not fit each other.

    Example:
        >>> rows = BucketedRows([[2, 7, 3], [2, 3]], [1, 0], pad_id=0, batch_size=2, seed=0)
        >>> inputs, labels, weights = rows.evaluation_batch(0)
        >>> inputs["token_ids"].tolist(), labels.tolist()
        ([[2, 3, 0], [2, 7, 3]], [0, 1])
    """

    def __init__(
        self, token_ids, labels, *, pad_id, batch_size, seed, segment_ids=None, widths=WIDTHS
    ):
        self._rows = {"token_ids": [np.asarray(row, "int32") for row in token_ids]}
        self.lengths = np.array([len(row) for row in self._rows["token_ids"]], "int64")
        if not len(self.lengths) or self.lengths.min() < 1:
            raise ValueError(
                "`token_ids` must be a list of rows, each with one token or more. Received: "
                f"{len(self.lengths)} rows, the shortest of {min(self.lengths, default=0)} tokens"
            )
        if segment_ids is not None:
            self._rows["segment_ids"] = [np.asarray(row, "int32") for row in segment_ids]
            if [len(row) for row in segment_ids] != self.lengths.tolist():
                raise ValueError(
                    "`segment_ids` must have rows as long as those of `token_ids`. Received: "
                    f"{len(segment_ids)} rows, some of another length"
                )
        if labels is not None and len(labels) != len(self.lengths):
            raise ValueError(
                "`labels` must have one entry for each row. Received: "
                f"{len(labels)} labels, {len(self.lengths)} rows"
            )
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
        self.labels = np.zeros(len(self.lengths), "int32") if labels is None else np.asarray(labels)
        self.pad_id = pad_id
        self.batch_size = batch_size
        self.seed = check_seed(seed)
        longest = int(self.lengths.max())
        self._widths = np.array([width for width in widths if width < longest] + [longest])
        self._whole = batch_size  # rows of the batch of all workers
        self._epoch = None, None
        self._sorted = self._cut(np.argsort(self.lengths, kind="stable"))

    def __len__(self):
        """Number of rows."""
        return len(self.lengths)

    @property
    def num_batches(self):
        return -(-len(self) // self._whole)

    num_evaluation_batches = num_batches

    def batch(self, step):
        """Batch number `step` of training, any, in any order.

        Returns:
            `(inputs, labels, weights)`: `inputs` has `token_ids` and `padding_mask`, and
            `segment_ids` if there are some, int32 `(batch, width)`; labels `(batch, ...)`; weights
            float32 of the same shape, 0 in rows that fill the batch up.
        """
        epoch, place = divmod(operator.index(step), self.num_batches)
        if step < 0:
            raise ValueError(f"`step` must be at least 0. Received: step={step}")
        known, batches = self._epoch
        if known != epoch:
            batches = self._batches_of(epoch)
            self._epoch = epoch, batches
        return self._filled(batches[place])

    def evaluation_batch(self, step):
        """Batch number `step` of `num_evaluation_batches`, shortest rows first."""
        if not 0 <= operator.index(step) < self.num_evaluation_batches:
            raise ValueError(
                "`step` must be from 0 to the number of evaluation batches less 1, "
                f"{self.num_evaluation_batches - 1}. Received: step={step}"
            )
        return self._filled(self._sorted[step])

    def evaluation_rows(self, step):
        """Numbers of the rows of `evaluation_batch(step)`, without those that fill it up."""
        return self._sorted[step][self._part]

    @property
    def signature(self):
        """Shapes and dtypes of a batch, `None` for the width; see `tf_dataset`."""
        row = (self.batch_size, None), "int32"
        labels = (self.batch_size, *self.labels.shape[1:])
        inputs = dict.fromkeys(["token_ids", "padding_mask", *list(self._rows)[1:]], row)
        return inputs, (labels, self.labels.dtype.name), (labels, "float32")

    def _batches_of(self, epoch):
        """The batches of an epoch, lists of row numbers."""
        places, epochs = np.arange(len(self)), np.full(len(self), epoch)
        rows = permute(self.seed, "buckets: rows", epochs, places, len(self))
        pool = _POOL * self._whole
        batches = []
        for start in range(0, len(rows), pool):
            some = rows[start : start + pool]
            batches += self._cut(some[np.argsort(self.lengths[some], kind="stable")])
        count = len(batches)
        order = permute(
            self.seed, "buckets: batches", np.full(count, epoch), np.arange(count), count
        )
        return [batches[place] for place in order]

    def _cut(self, rows):
        return [rows[start : start + self._whole] for start in range(0, len(rows), self._whole)]

    def _filled(self, batch):
        width = self._widths[np.searchsorted(self._widths, self.lengths[batch].max())]
        numbers = batch[self._part]
        shape = self.batch_size, width
        inputs = {"token_ids": np.full(shape, self.pad_id, "int32")}
        inputs["padding_mask"] = np.zeros(shape, "int32")
        for name in list(self._rows)[1:]:
            inputs[name] = np.zeros(shape, "int32")
        for place, number in enumerate(numbers):
            length = self.lengths[number]
            inputs["padding_mask"][place, :length] = 1
            for name, rows in self._rows.items():
                inputs[name][place, :length] = rows[number]
        labels = np.zeros((self.batch_size, *self.labels.shape[1:]), self.labels.dtype)
        labels[: len(numbers)] = self.labels[numbers]
        weights = np.zeros(labels.shape, "float32")
        weights[: len(numbers)] = 1
        return inputs, labels, weights
