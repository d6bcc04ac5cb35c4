"""Sizes at which squares neither overflow nor vanish."""

import numpy as np


def scaled(values):
    """Divides by the power of 2 that brings the largest size into [0.5, 1)."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -exponent), exponent
