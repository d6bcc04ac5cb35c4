"""The bootstrap's interval, by hand, by simulation and for mistakes."""

import numpy as np
import pytest

from keras_tupe.metrics import bootstrap_interval, spearman


def test_it_is_the_quantiles_of_scores_of_drawn_rows():
    labels, found = np.arange(7.0), np.array([0.0, 2, 1, 3, 6, 4, 5])
    generator, scores = np.random.default_rng(5), []
    for _ in range(40):
        rows = generator.integers(0, 7, 7)
        scores.append(spearman(labels[rows], found[rows]))
    wanted = (spearman(labels, found), *np.quantile(scores, [0.1, 0.9]))
    assert bootstrap_interval(
        spearman, labels, found, resamples=40, level=0.8, seed=5
    ) == pytest.approx(wanted)


def test_about_so_many_intervals_of_a_mean_hold_the_true_one():
    generator, held = np.random.default_rng(0), 0
    for seed in range(200):
        values = generator.normal(size=50)
        _, low, high = bootstrap_interval(np.mean, values, resamples=200, level=0.9, seed=seed)
        held += low < 0 < high
    assert 165 <= held <= 193  # 180 +- 3 sigma


@pytest.mark.parametrize(
    ("columns", "options", "error", "words"),
    [
        ((), {}, ValueError, "columns of equally many rows"),
        (([1.0, 2], [1.0]), {}, ValueError, r"columns of \[2, 1\] rows"),
        (([1.0],), {}, ValueError, "two at least"),
        (([1.0, 2],), {"resamples": 0}, ValueError, "resamples=0"),
        (([1.0, 2],), {"resamples": 1.5}, TypeError, "must be an integer"),
        (([1.0, 2],), {"level": 95}, ValueError, "as 0.95 for 95 %"),
    ],
)
def test_what_is_no_sample_is_refused(columns, options, error, words):
    with pytest.raises(error, match=words):
        bootstrap_interval(np.mean, *columns, **options)
