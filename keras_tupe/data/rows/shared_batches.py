"""Batches that several workers share: each makes its own part of every batch."""

import copy


class SharedBatches:
    """First parent of rows whose batches can be shared; `batch_size` is set by the class.

    Attributes:
        batch_size: rows in each batch of this worker.
    """

    _offset = 0  # of this worker's rows in the batch of all

    @property
    def signature(self):
        """Shapes and dtypes of a batch, each as `(shape, dtype)`: inputs, labels, weights."""
        return tuple(map(_signature, self.batch(0)))

    @property
    def _part(self):
        """Which rows of the batch of all workers are this one's."""
        return slice(self._offset, self._offset + self.batch_size)

    def shard(self, index, count):
        """The part of one of several workers.

        Worker `index` gets rows index * n to (index + 1) * n - 1 of each batch of
        `batch_size` = count * n rows: one after the other the parts of all workers are the batch.

        Args:
            index: number of the worker, from 0 to `count - 1`.
            count: number of workers; `batch_size` must be a multiple of it.

        Returns:
            Rows of the same class with `batch_size // count` rows in each batch.

        Raises:
            ValueError: if the workers' parts would not be equal, or there is no such worker.
        """
        if count < 1 or self.batch_size % count:
            raise ValueError(
                "`batch_size` must be a multiple of the number of workers, so that each gets as "
                f"many rows. Received: batch_size={self.batch_size}, count={count}"
            )
        if not 0 <= index < count:
            raise ValueError(
                f"`index` must be from 0 to {count - 1}, the number of a worker. "
                f"Received: index={index}"
            )
        part = copy.copy(self)
        part.batch_size = self.batch_size // count
        part._offset = self._offset + index * part.batch_size
        return part


def _signature(part):
    if isinstance(part, dict):
        return {name: _signature(value) for name, value in part.items()}
    return part.shape, part.dtype.name
