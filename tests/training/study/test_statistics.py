import math

import hypothesis
import numpy as np
import pytest
import scipy.stats
from hypothesis import strategies

from training.study.results import holm, shares_to_baseline, steps_to_reach, summarize

P_VALUES = strategies.lists(strategies.floats(0, 1), min_size=1, max_size=7)


@hypothesis.given(p_values=P_VALUES)
def test_holm_rejects_what_its_steps_reject(p_values):
    """The procedure of the paper: step down until a p-value is above its share of the level."""
    for level in (0.01, 0.05, 0.2):
        left, rejected = dict(enumerate(p_values)), set()
        while left:
            smallest = min(left, key=left.get)
            if left[smallest] > level / len(left):
                break
            rejected.add(smallest)
            del left[smallest]
        adjusted = holm(p_values)
        near = [abs(p - level) < 1e-9 for p in adjusted]
        if not any(near):
            assert {place for place, p in enumerate(adjusted) if p <= level} == rejected


def test_holm_counts_comparisons_that_tell_nothing_and_leaves_them():
    adjusted = holm([math.nan, 0.01, 0.02])
    assert math.isnan(adjusted[0])
    assert adjusted[1:] == [0.03, 0.04]
    assert holm([]) == []


def test_holm_never_makes_a_larger_p_value_the_smaller_one():
    """By the steps the second of two is rejected only if the first is."""
    assert holm([0.031, 0.03]) == [0.06, 0.06]


def test_a_summary_is_student_s():
    generator = np.random.default_rng(0)
    numbers = {
        name: dict(enumerate(generator.normal(size=5))) for name in ("absolute", "t5", "alibi")
    }
    found = summarize(numbers, "absolute")
    expected = []
    for name in ("t5", "alibi"):
        ours, values = found[name], list(numbers[name].values())
        interval = scipy.stats.ttest_1samp(values, 0).confidence_interval()
        np.testing.assert_allclose([ours.low, ours.high], interval, rtol=1e-12)
        assert ours.mean == pytest.approx(np.mean(values), rel=1e-12)
        theirs = scipy.stats.ttest_rel(values, list(numbers["absolute"].values()))
        assert ours.difference.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
        np.testing.assert_allclose(
            [ours.difference.low, ours.difference.high], theirs.confidence_interval(), rtol=1e-9
        )
        expected.append(theirs.pvalue)
    first, second = sorted(expected)
    assert sorted(found[name].adjusted_p for name in ("t5", "alibi")) == pytest.approx(
        [min(2 * first, 1), max(min(2 * first, 1), second)]
    )
    assert found["absolute"].difference is None
    assert found["absolute"].conclusion() == ""


def test_only_seeds_of_both_are_compared():
    numbers = {"absolute": {0: 5.0, 1: 6.0, 3: 7.0}, "t5": {1: 5.5, 3: 6.0, 4: 0.0}, "xlnet": {}}
    found = summarize(numbers, "absolute")
    assert set(found) == {"absolute", "t5"}
    assert found["t5"].difference.mean == -0.75
    assert found["t5"].difference.count == 2
    assert found["t5"].mean == pytest.approx(11.5 / 3)
    assert summarize({"t5": {1: 5.5}, "absolute": {}}, "absolute")["t5"].difference is None


@pytest.mark.parametrize(
    ("others", "conclusion"),
    [
        ([4.0, 4.1, 3.9, 4.05], "lower"),
        ([6.0, 6.1, 5.9, 6.05], "higher"),
        ([5.2, 4.7, 5.1, 4.9], "too few seeds to tell"),
        ([5.0, 5.1, 4.9, 5.05], "equal"),
    ],
)
def test_the_conclusion_is_in_words(others, conclusion):
    base = [5.0, 5.1, 4.9, 5.05]
    numbers = {"absolute": dict(enumerate(base)), "t5": dict(enumerate(np.add(others, 0)))}
    numbers["t5"] = {s: v + 0.01 * s * (conclusion != "equal") for s, v in numbers["t5"].items()}
    assert summarize(numbers, "absolute")["t5"].conclusion() == conclusion


def test_differences_without_spread_have_no_p_value():
    """Models that answer a constant differ alike with every seed: that proves nothing."""
    numbers = {"absolute": dict.fromkeys(range(3), 52.7), "t5": dict.fromkeys(range(3), 47.3)}
    numbers["alibi"] = {0: 50.0, 1: 50.1, 2: 50.3}
    found = summarize(numbers, "absolute")
    assert found["t5"].conclusion() == "no spread to judge by"
    assert math.isnan(found["t5"].p_value)
    assert math.isnan(found["t5"].adjusted_p)
    assert math.isnan(found["t5"].record()["difference"]["p_value"])
    assert found["alibi"].adjusted_p == 2 * found["alibi"].p_value


def test_what_does_not_survive_many_comparisons_says_so():
    base = {0: 5.0, 1: 5.2, 2: 5.1, 3: 5.3}
    numbers = {"absolute": base, "t5": {0: 4.9, 1: 5.05, 2: 5.06, 3: 5.2}}
    numbers |= {f"m{i}": {s: v + 0.1 * (-1) ** s for s, v in base.items()} for i in range(6)}
    found = summarize(numbers, "absolute")["t5"]
    assert found.difference.p_value < 0.05 < found.adjusted_p
    assert found.conclusion() == "lower, but not after Holm"


@hypothesis.given(
    losses=strategies.lists(strategies.floats(1, 9), min_size=1, max_size=8),
    target=strategies.floats(1, 9),
)
def test_steps_to_reach_is_where_the_curve_first_is_below(losses, target):
    steps = [25 * (n + 1) for n in range(len(losses))]
    fine = np.linspace(steps[0], steps[-1], 100_001)
    below = np.interp(fine, steps, losses) <= target
    found = steps_to_reach(steps, losses, target)
    if min(losses) > target:
        assert found is None
    elif below.any():
        assert found == pytest.approx(fine[below.argmax()], abs=(fine[-1] - fine[0]) / 1e5 + 1e-6)


def test_seeds_and_methods_that_the_baseline_lacks_have_no_share():
    curves = {
        "absolute": {0: ([1, 2], [3.0, 2.0])},
        "t5": {0: ([1, 2], [2.5, 1.5]), 1: ([1, 2], [1.0, 1.0])},
        "none": {1: ([1, 2], [1.0, 1.0])},
    }
    found = shares_to_baseline(curves, "absolute", 2)
    assert {name: one.values for name, one in found.items()} == {
        "absolute": {0: 1.0},
        "t5": {0: 0.75},
    }
    assert shares_to_baseline(curves, "alibi", 2) == {}


def test_an_interval_of_shares_has_no_impossible_ones():
    loss = {"absolute": [3.0, 1.0], "t5": [0.9, 0.5]}
    curves = {
        name: {0: ([1, 10], values), 1: ([1, 10], [3.0, values[1]])}
        for name, values in loss.items()
    }
    found = shares_to_baseline(curves, "absolute", 10)
    assert found["t5"].values == {0: 0.1, 1: pytest.approx(0.82)}
    assert (found["t5"].low, found["t5"].high) == (0.0, 1.0)
    assert (found["absolute"].low, found["absolute"].high) == (1.0, 1.0)
