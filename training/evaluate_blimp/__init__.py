"""`keras-tupe evaluate_blimp`: which sentence of a minimal pair a preset finds likelier."""
