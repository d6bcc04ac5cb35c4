"""Sizes at which squares neither overflow nor vanish."""

import numpy as np


def scaled(values):
    """Divides by the power of 2 that brings the largest size into [0.5, 1).

    Args:
        values: float64 `(n,)`, finite.

    Returns:
        Tuple of float64 `(n,)` and the exponent: `values == scaled * 2.0**exponent`, exactly but
        for numbers some 300 orders of magnitude below the largest.
    """
    exponent = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -exponent), exponent
