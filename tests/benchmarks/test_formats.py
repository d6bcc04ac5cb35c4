"""The benchmark of the formats: its table, its measure, and one method in all of them."""

import numpy as np
import pytest

from benchmarks.formats.cells import CELLS, difference, measure, rows


def test_a_difference_is_seen_at_real_tokens_and_nothing_hides_it():
    mask = np.array([[1, 1, 0]])
    right = {"sequence_output": np.ones((1, 3, 2)), "pooled_output": np.full((1, 2), 5.0)}
    padded = {**right, "sequence_output": np.array([[[1, 1], [1, 1], [7, 7]]])}
    assert difference(padded, right, mask) == 0
    wrong = {**right, "pooled_output": np.full((1, 2), 5.5)}
    assert difference(wrong, right, mask) == pytest.approx(0.1)  # relative above 1
    broken = {**right, "pooled_output": np.array([[np.nan, 5.0]])}
    assert difference(broken, right, mask) == np.inf
    assert rows(7, 5)["padding_mask"].sum(axis=1).tolist() == [7, 6, 4, 1, 7]


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_small(name):
    assert measure("tupe_r", name) <= 1e-5
