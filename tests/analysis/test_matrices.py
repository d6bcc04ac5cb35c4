import numpy as np
import pytest

from keras_tupe.analysis import (
    correlation_rank,
    name_patterns,
    remove_row_constants,
    toeplitz_energy,
    toeplitz_part,
)

RNG = np.random.default_rng(0)
HEADS, LENGTH = 3, 11


def toeplitz(values):
    """Returns B[i, j] = values[n - 1 + j - i], entry by entry."""
    length = (values.shape[-1] + 1) // 2
    matrices = np.empty((len(values), length, length))
    for h, i, j in np.ndindex(matrices.shape):
        matrices[h, i, j] = values[h, length - 1 + j - i]
    return matrices


def test_rank_follows_the_rule_of_numpy_for_every_head_alone():
    for dtype in ("float32", "float64"):  # a correlation of heads of size 5 has rank 5
        query, key = RNG.normal(size=(2, HEADS, LENGTH, 5)).astype(dtype)
        assert correlation_rank(query @ key.swapaxes(1, 2)).tolist() == [5] * HEADS
    matrices = RNG.normal(size=(HEADS, LENGTH, LENGTH))
    matrices[1] = 0
    matrices[2] *= 1e-9
    assert correlation_rank(matrices).tolist() == [LENGTH, 0, LENGTH]
    assert correlation_rank(matrices).tolist() == np.linalg.matrix_rank(matrices).tolist()


@pytest.mark.parametrize("length", [1, 2, LENGTH])
def test_the_toeplitz_part_has_the_mean_of_every_diagonal(length):
    matrices = RNG.normal(size=(HEADS, length, length))
    part = toeplitz_part(matrices)
    for h in range(HEADS):
        for distance in range(1 - length, length):
            diagonal = np.diagonal(matrices[h], distance)
            np.testing.assert_allclose(np.diagonal(part[h], distance), diagonal.mean())


def test_toeplitz_energy_is_what_least_squares_explains():
    matrices = RNG.normal(size=(HEADS, LENGTH, LENGTH)) + 0.3
    place = np.arange(LENGTH)
    distance = (place[None, :] - place[:, None]).ravel()
    columns = np.stack([distance == d for d in range(1 - LENGTH, LENGTH)], axis=1).astype(float)
    constants = np.repeat(np.eye(LENGTH), LENGTH, axis=0)  # one for each row
    energies = toeplitz_energy(matrices)
    for matrix, energy in zip(matrices, energies, strict=True):

        def left(design, matrix=matrix):
            target = matrix.ravel()
            return ((target - design @ np.linalg.lstsq(design, target)[0]) ** 2).sum()

        expected = 1 - left(np.hstack([columns, constants])) / left(constants)
        np.testing.assert_allclose(energy, expected, atol=1e-10)
    assert ((energies > 0) & (energies < 1)).all()


def test_toeplitz_energy_sees_no_row_constants():
    matrices = RNG.normal(size=(HEADS, LENGTH, LENGTH))
    np.testing.assert_allclose(toeplitz_energy(matrices + 1e3), toeplitz_energy(matrices))
    matrices = toeplitz(RNG.normal(size=(HEADS, 2 * LENGTH - 1)))
    shifted = matrices + 7 * RNG.normal(size=(HEADS, LENGTH, 1))
    np.testing.assert_allclose(toeplitz_energy(shifted), 1, atol=1e-12)
    nothing = np.zeros((1, LENGTH, LENGTH))
    assert toeplitz_energy(nothing) == 1
    assert toeplitz_energy(nothing + RNG.normal(size=(1, LENGTH, 1))) == 1


@pytest.mark.parametrize("length", [1, 2, LENGTH])
def test_removing_row_constants_leaves_a_function_of_distance_and_changes_nothing_else(length):
    matrices = toeplitz(RNG.normal(size=(HEADS, 2 * length - 1)))
    rows = 5 * RNG.normal(size=(HEADS, length, 1))
    expected = matrices - matrices.mean(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(remove_row_constants(matrices + rows), expected, atol=1e-12)
    matrices = RNG.normal(size=(HEADS, length, length))
    found = remove_row_constants(matrices)
    np.testing.assert_allclose(found - matrices, (found - matrices)[:, :, :1] + 0 * found)
    np.testing.assert_allclose(remove_row_constants(matrices + rows), found, atol=1e-12)


FUNCTIONS = [correlation_rank, toeplitz_part, toeplitz_energy, remove_row_constants, name_patterns]


@pytest.mark.parametrize(
    ("matrices", "error", "message"),
    [
        (np.zeros((7, 7)), ValueError, r"\(heads, length, length\).*Received: .*\(7, 7\)"),
        (np.zeros((2, 7, 8)), ValueError, r"\(2, 7, 8\)"),
        (np.zeros((0, 7, 7)), ValueError, "at least one head"),
        (np.zeros((1, 0, 0)), ValueError, "length >="),
        (np.full((1, 7, 7), np.nan), ValueError, "must be finite.*49 values"),
        (np.full((1, 7, 7), -np.inf), ValueError, "must be finite"),
        (np.zeros((1, 7, 7), complex), TypeError, "real numbers.*complex128"),
        ([[["a"]]], TypeError, "real numbers"),
    ],
)
def test_what_is_no_matrix_per_head_is_refused(matrices, error, message):
    for function in FUNCTIONS:
        with pytest.raises(error, match=message):
            function(matrices)


def test_too_few_words_are_answered_with_a_sentence():
    with pytest.raises(ValueError, match="length >= 5"):
        name_patterns(np.zeros((1, 4, 4)))
