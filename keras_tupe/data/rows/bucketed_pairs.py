"""Pairs of rows, sources and targets, to batches that are hardly wider than their rows."""

import numpy as np

from keras_tupe.data.rows.bucketed_rows import BucketedRows

WIDTHS = (8, 16, 32, 64, 128, 256, 512)
_SIDES = ("encoder", "decoder")


class BucketedPairs(BucketedRows):
    """Training and evaluation batches of a model that writes a target to a source.

    Epochs, pools, order and the filling up of batches are those of `BucketedRows`, where the length
    of a row is that of its source and its target together. Each side of a batch is as wide as the
    first of a few widths that holds its longest row: few, since both sides' widths make a shape.

    The decoder reads a target without its last token, and the labels are the target without its
    first one, so that each token is predicted from those before it.

    Args:
        sources: list of integer arrays `(source's length,)`, without padding, none empty.
        targets: list of as many integer arrays `(target's length,)`, each of two tokens or more,
            the start token included, and the end token unless the target was cut.
        pad_id: what fills a row up.
        batch_size: pairs per batch, at least 1.
        seed: integer from 0 to 2**64 - 1.
        widths: widths of batches, tokens, ascending; longer sides have one width more, that of the
            longest.

    Attributes:
        lengths: int64 `(pairs,)`, tokens of both sides of each pair.
        num_batches, num_evaluation_batches: as of `BucketedRows`.

    Raises:
        ValueError: if there is no pair, a source is empty, a target has less than two tokens, or
            there are not as many of both.

    Example:
        >>> pairs = BucketedPairs([[2, 7, 3]], [[2, 8, 9, 3]], pad_id=0, batch_size=1, seed=0)
        >>> inputs, labels, weights = pairs.batch(0)
        >>> inputs["decoder_token_ids"].tolist(), labels.tolist()
        ([[2, 8, 9]], [[8, 9, 3]])
    """

    def __init__(self, sources, targets, *, pad_id, batch_size, seed, widths=WIDTHS):
        if len(sources) != len(targets):
            raise ValueError(
                "There must be as many targets as sources. Received: "
                f"{len(sources)} sources, {len(targets)} targets"
            )
        self._sources = [np.asarray(row, "int32") for row in sources]
        self._targets = [np.asarray(row, "int32") for row in targets]
        shortest = [min(map(len, rows), default=0) for rows in (self._sources, self._targets)]
        if not sources or shortest[0] < 1 or shortest[1] < 2:
            raise ValueError(
                "There must be a pair, each source must have a token, and each target two. "
                f"Received: {len(sources)} pairs, the shortest source of {shortest[0]} tokens, the "
                f"shortest target of {shortest[1]}"
            )
        both = [np.concatenate(pair) for pair in zip(self._sources, self._targets, strict=True)]
        super().__init__(both, None, pad_id=pad_id, batch_size=batch_size, seed=seed)
        self._side_widths = [
            _with_longest(widths, max(map(len, self._sources))),
            _with_longest(widths, max(map(len, self._targets)) - 1),
        ]

    @property
    def signature(self):
        """Shapes and dtypes of a batch, `None` for the widths; see `tf_dataset`."""
        row = (self.batch_size, None)
        names = [f"{side}_{kind}" for side in _SIDES for kind in ("token_ids", "padding_mask")]
        return dict.fromkeys(names, (row, "int32")), (row, "int32"), (row, "float32")

    def _filled(self, batch):
        read, labels = [], []
        for number in batch:
            read.append(self._targets[number][:-1])
            labels.append(self._targets[number][1:])
        rows = {"encoder": [self._sources[number] for number in batch], "decoder": read}
        inputs = {}
        for (side, side_rows), widths in zip(rows.items(), self._side_widths, strict=True):
            width = _width(widths, side_rows)
            inputs[f"{side}_token_ids"] = self._padded(side_rows, width, self.pad_id)
            ones = [np.ones(len(row), "int32") for row in side_rows]
            inputs[f"{side}_padding_mask"] = self._padded(ones, width, 0)
        labels = self._padded(labels, width, self.pad_id)
        return inputs, labels, inputs["decoder_padding_mask"].astype("float32")

    def _padded(self, rows, width, value):
        """Returns this worker's rows of a batch, `(batch_size, width)`."""
        found = np.full((self.batch_size, width), value, "int32")
        for place, row in enumerate(rows[self._part]):
            found[place, : len(row)] = row
        return found


def _with_longest(widths, longest):
    return np.array([width for width in widths if width < longest] + [longest])


def _width(widths, rows):
    """Returns the first of the widths that holds the rows of the batch of all workers."""
    return int(widths[np.searchsorted(widths, max(map(len, rows)))])
