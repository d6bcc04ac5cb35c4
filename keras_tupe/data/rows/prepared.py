"""Prepared rows: read at random positions from the directory that `training.prepare` made."""

import functools
import pathlib

import numpy as np

from keras_tupe._array_file import read_npy
from keras_tupe.data.rows._preparation import read_preparation
from keras_tupe.data.rows._shard import Shard
from keras_tupe.data.rows.dataset_writer import pairs_file
from keras_tupe.data.rows.denoising import Denoising
from keras_tupe.data.rows.masking import Masking
from keras_tupe.data.rows.next_tokens import NextTokens
from keras_tupe.data.rows.pairs import MaskedPairs
from keras_tupe.data.rows.partners import Partners
from keras_tupe.data.rows.replaced_tokens import ReplacedTokens


class PreparedRows:
    """The rows of one split, read when they are asked for.

    `rows[indices]` gives the rows of these numbers, in this order; numbers may repeat. What is
    read is checked: ArrayRecord has a hash for every record, and the ids must be of the
    vocabulary. May be used by several threads at once and sent to other processes; but once rows
    were read, a fork of the process cannot read more (ArrayRecord may hang there), and says so.
    No TensorFlow is needed.

    Args:
        directory: path of the directory.
        split: `"train"` or `"valid"`. Defaults to `"train"`.

    Attributes:
        length: tokens per row.
        vocabulary: the `PreparedVocabulary`.
        record: the content of `preparation.json`, a dictionary.

    Raises:
        FileNotFoundError: if this is no prepared directory, it is not finished, or a file of it
            is missing.
        ValueError: if there are no rows of this split, or a file is not the one that was written.
            Damage inside of a shard is found when it is read; the message names the file.
    """

    def __init__(self, directory, split="train"):
        self.record, self.vocabulary, shards = read_preparation(directory)
        if split not in shards:
            raise ValueError(
                f"`split` must be one of {list(shards)}. Received: split={split!r}, "
                f"directory={str(directory)!r}"
            )
        self.directory = directory
        self.split = split
        self.length = self.record["length"]
        self._shards = [
            Shard(path, size, self.length, self.vocabulary.size) for path, size in shards[split]
        ]
        self._ends = np.cumsum([size for _, size in shards[split]])

    def __len__(self):
        """Number of rows."""
        return int(self._ends[-1])

    def __repr__(self):
        return f"PreparedRows({str(self.directory)!r}, split={self.split!r})"

    def __getitem__(self, indices):
        """Rows by their numbers.

        Args:
            indices: integers from 0 to `len - 1`, `(n,)`.

        Returns:
            int32, `(n, length)`.
        """
        indices = self._checked(indices)
        order = np.argsort(indices, kind="stable")  # a shard is read from its start to its end
        ordered = indices[order]
        numbers = np.searchsorted(self._ends, ordered, side="right")
        blocks = [np.empty((0, self.length), "int32")]
        for number in np.unique(numbers):
            first, last = np.searchsorted(numbers, [number, number + 1])
            shard = self._shards[number]
            positions = ordered[first:last] - (self._ends[number] - shard.num_rows)
            blocks.append(shard.read(positions))  # checked: the length may be a damaged record's
        rows = np.empty((len(indices), self.length), "int32")
        rows[order] = np.concatenate(blocks)
        return rows

    def masking(self, *, whole_word=False, **settings):
        """The `Masking` of this vocabulary.

        Args:
            whole_word: whether whole words are masked. Defaults to `False`.
            **settings: `rate`, `max_masked` and `mask_special` of `Masking`.
        """
        vocabulary = self.vocabulary
        return Masking(
            vocabulary.size,
            mask_id=vocabulary.mask_id,
            pad_id=vocabulary.pad_id,
            special_ids=vocabulary.special_ids,
            begins_word=vocabulary.begins_word if whole_word else None,
            **settings,
        )

    def next_tokens(self):
        """The `NextTokens` of this vocabulary."""
        vocabulary = self.vocabulary
        return NextTokens(vocabulary.size, vocabulary.pad_id, vocabulary.end_id)

    def denoising(self, **settings):
        """The `Denoising` of this vocabulary.

        Args:
            **settings: `infill_share`, `mean_span` and `permute_sentences` of `Denoising`.
        """
        vocabulary = self.vocabulary
        return Denoising(
            vocabulary.size,
            mask_id=vocabulary.mask_id,
            pad_id=vocabulary.pad_id,
            frame_ids=(vocabulary.start_id, vocabulary.end_id),
            special_ids=vocabulary.special_ids,
            stop_ids=vocabulary.stop_ids,
            **settings,
        )

    def replaced_tokens(self, masking=None):
        """The `ReplacedTokens` of this vocabulary.

        Args:
            masking: its `Masking`; `None` for that with the defaults.
        """
        return ReplacedTokens(masking or self.masking())

    def masked_pairs(self, kind, masking=None):
        """The `MaskedPairs` of this vocabulary.

        Args:
            kind: `"next"` or `"order"`.
            masking: the `Masking` of the tokens. Defaults to that of `masking()`.

        Raises:
            ValueError: if the rows are no pairs, or those of `"order"` are to be used for `"next"`.
        """
        found = self.record.get("pairs")
        if found != kind and (found, kind) != ("next", "order"):
            needed = "next" if kind == "next" else "order` or `--pairs next"
            raise ValueError(
                f"Rows for pairs of the kind {kind!r} are prepared with `--pairs {needed}`. "
                f"Received: rows with pairs={found!r} in {str(self.directory)!r}"
            )
        return MaskedPairs(masking or self.masking(), self.vocabulary.end_id, kind)

    @functools.cached_property
    def partners(self):
        """The `Partners` of rows that were prepared with `--pairs next`.

        Raises:
            FileNotFoundError: if they were not.
            ValueError: if all rows are of one document.
        """
        path = pathlib.Path(self.directory, pairs_file(self.split))
        if not path.is_file():
            raise FileNotFoundError(
                "Random second segments are drawn from rows that were prepared with `--pairs "
                f"next`. Prepare the text again. Received: no {str(path)!r}"
            )
        index = read_npy(path)  # (rows, 2), hashed like all files beside the shards
        limits = self.length, len(self)  # of the tokens of a segment, and the numbers of documents
        if (
            index.dtype != "int64"
            or index.shape != (len(self), 2)
            or ((index < 0) | (index >= limits)).any()
        ):
            raise ValueError(
                "The file of the pairs is not that of these rows. Prepare them again. Received: "
                f"{str(path)!r}, shape {index.shape}, type {index.dtype}, for {len(self)} rows"
            )
        return Partners(*index.T)

    def _checked(self, indices):
        indices = np.asarray(indices)
        if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
            raise TypeError(
                "Rows are asked for by an array of integers with one axis, such as `rows[[3]]`. "
                f"Received: shape={indices.shape}, dtype={indices.dtype}"
            )
        if len(indices) and (indices.min() < 0 or indices.max() >= len(self)):
            raise IndexError(
                f"The numbers of rows are from 0 to {len(self) - 1}. "
                f"Received: {indices.min()} to {indices.max()}"
            )
        return indices
