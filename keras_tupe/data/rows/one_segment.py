"""A rule for models with segments, of rows that have one."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class OneSegment:
    """The inputs of another rule and `segment_ids`, all 0: what a BERT takes with plain rows.

    Args:
        rule: a `Masking`, or another rule of `Rows` without a method `read`.

    Example:
        >>> from keras_tupe.data import Masking, OneSegment
        >>> rule = OneSegment(Masking(vocabulary_size=30, mask_id=4, pad_id=0, special_ids=(1, 2)))
        >>> inputs, labels, weights = rule.examples(np.array([[1, 7, 8, 2]]), [0], seed=0)
        >>> inputs["segment_ids"]
        array([[0, 0, 0, 0]], dtype=int32)
    """

    rule: object

    @property
    def vocabulary_size(self):
        """Number of pieces."""
        return self.rule.vocabulary_size

    @property
    def pad_id(self):
        """Id of [PAD]."""
        return self.rule.pad_id

    def examples(self, token_ids, example_numbers, seed):
        """Inputs, labels and weights of rows, as the rule's, with the segments.

        Args:
            token_ids, example_numbers, seed: as of `Masking.examples`.
        """
        inputs, *others = self.rule.examples(token_ids, example_numbers, seed)
        segments = np.zeros(inputs["token_ids"].shape, "int32")
        return ({**inputs, "segment_ids": segments}, *others)
