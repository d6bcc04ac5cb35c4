"""TUPE's Proposition 1: every Toeplitz matrix is a correlation of fixed waves."""

import numpy as np

from keras_tupe.analysis._checks import real_numbers


def toeplitz_factors(values):
    """Returns G and D with B = G D G*, for the Toeplitz matrix B of given values.

    The proposition says that a relative bias lies within what absolute positions can express, if
    only they had 2n complex dimensions: the rows of G are vectors of positions, the same for
    every bias.

    Equation (Ke et al. 2021, Proposition 1), j = 0..n-1 and k = 0..2n-1:

        B[i, j] = values[n - 1 + j - i]
        G[j, k] = exp(i pi (j + 1) k / n) / sqrt(2n)
        D[k, k] = sum over m = 0..2n-1 of c[m] exp(-i pi m k / n)

    where c[m] = values[n - 1 - m] for m < n, c[n] = 0 and c[m] = values[3n - 1 - m] for m > n. That
    is the discrete Fourier transform of the first column of the circulant matrix of size 2n
    whose corner is B.

    Differences from the source: there D is said to exist. B has 2n - 1 values and D has 2n, so one
    is free; c[n] = 0 gives the D with the smallest norm.

    Args:
        values: `(2n - 1,)` or `(heads, 2n - 1)`, from distance 1 - n to n - 1.

    Returns:
        Tuple of G, complex128 `(n, 2n)`, and the diagonal of D, complex128 `(..., 2n)`.

    Raises:
        TypeError: if `values` are not real numbers.
        ValueError: if their last axis is even or empty, or a value is not finite.

    Example:
        >>> waves, diagonal = toeplitz_factors([3.0, 2.0, 1.0, 5.0, 7.0])
        >>> toeplitz_from_factors(waves, diagonal).real.round(9) + 0.0
        array([[1., 5., 7.], [2., 1., 5.], [3., 2., 1.]])

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """
    values = real_numbers(values, "values").astype("float64")
    if values.ndim not in (1, 2) or values.shape[-1] % 2 == 0:
        raise ValueError(
            "`values` must have the shape (2n - 1,) or (heads, 2n - 1): one value per distance, "
            f"from 1 - n to n - 1. Received: values of shape {values.shape}"
        )
    length = (values.shape[-1] + 1) // 2
    column = np.zeros((*values.shape[:-1], 2 * length))
    column[..., :length] = values[..., length - 1 :: -1]
    column[..., length + 1 :] = values[..., : length - 1 : -1]
    # Whole multiples of pi / n are reduced before the exponential, which keeps the last digits.
    turns = np.outer(np.arange(1, length + 1), np.arange(2 * length)) % (2 * length)
    waves = np.exp(1j * np.pi * turns / length) / np.sqrt(2 * length)
    return waves, np.fft.fft(column)


def toeplitz_from_factors(waves, diagonal):
    """Returns G D G*, the Toeplitz matrix that `toeplitz_factors` took apart.

    Args:
        waves: G, `(n, 2n)`.
        diagonal: the diagonal of D, `(2n,)` or `(heads, 2n)`.

    Returns:
        complex128 `(..., n, n)`. The imaginary part is rounding if D came from real values.

    Raises:
        ValueError: if the shapes do not fit.

    Example:
        >>> toeplitz_from_factors(*toeplitz_factors(np.ones((4, 9)))).shape
        (4, 5, 5)
    """
    waves, diagonal = np.asarray(waves), np.asarray(diagonal)
    if waves.ndim != 2 or diagonal.ndim not in (1, 2) or diagonal.shape[-1] != waves.shape[1]:
        raise ValueError(
            "`waves` must have the shape (n, 2n) and `diagonal` (2n,) or (heads, 2n), as "
            f"`toeplitz_factors` returns them. Received: waves of shape {waves.shape}, diagonal of "
            f"shape {diagonal.shape}"
        )
    return (waves * diagonal[..., None, :]) @ waves.conj().T
