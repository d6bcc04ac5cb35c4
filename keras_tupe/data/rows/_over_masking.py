"""What rules that mask tokens as part of their work have of their `Masking`."""


class OverMasking:
    """Parent of a rule with an attribute `masking`, a `Masking`."""

    @property
    def vocabulary_size(self):
        """Number of pieces."""
        return self.masking.vocabulary_size

    @property
    def pad_id(self):
        """Id of [PAD]."""
        return self.masking.pad_id
