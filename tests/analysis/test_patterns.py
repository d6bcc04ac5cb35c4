import numpy as np
import pytest

from keras_tupe import TupeBackbone
from keras_tupe.analysis import name_patterns, seen_keys
from keras_tupe.analysis.attention_patterns import BROADLY, GLOBALLY, LOCALLY, NEXT, PREVIOUS

LENGTHS = [16, 33, 128, 300]


def distances(length):
    place = np.arange(length)
    return (place[None, :] - place[:, None]).astype("float64")


# Heads that have a pattern plainly, as logits by distance.
HEADS = {
    "avoids its surroundings": (GLOBALLY, lambda d: np.where(np.abs(d) <= 6, -3.0, 0.0)),
    "the farther the better": (GLOBALLY, lambda d: 8 * np.abs(d) / np.abs(d).max()),
    "itself": (LOCALLY, lambda d: np.where(d == 0, 12.0, 0.0)),
    "itself alone": (LOCALLY, lambda d: np.where(d == 0, 2000.0, 0.0)),
    "both neighbors": (LOCALLY, lambda d: np.where(np.abs(d) == 1, 8.0, 0.0)),
    "fades with distance": (LOCALLY, lambda d: -2 * np.abs(d)),
    "no preference": (BROADLY, lambda d: 0 * d),
    "a wide hill": (BROADLY, lambda d: -((d / np.abs(d).max()) ** 2)),
    "the word before": (PREVIOUS, lambda d: np.where(d == -1, 10.0, 0.0)),
    "all words before": (PREVIOUS, lambda d: np.where(d < 0, 3.0, 0.0)),
    "the word after": (NEXT, lambda d: np.where(d == 1, 10.0, 0.0)),
    "all words after": (NEXT, lambda d: np.where(d > 0, 3.0, 0.0)),
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("head", HEADS)
def test_a_head_with_a_pattern_gets_its_name(head, length):
    name, logits = HEADS[head]
    plain = logits(distances(length))
    rng = np.random.default_rng(length)
    noisy = plain + rng.normal(0, 0.3, plain.shape)
    rows = plain + rng.normal(0, 50, (length, 1))
    of_cls = plain.copy()  # its row and its column do not matter
    of_cls[0], of_cls[:, 0] = rng.normal(0, 50, length), 1e4
    found = name_patterns(np.stack([plain, noisy, rows, 1.3 * plain, 0.8 * plain, of_cls]))
    assert found == [name] * 6
    backwards = {PREVIOUS: NEXT, NEXT: PREVIOUS}.get(name, name)
    assert name_patterns(logits(-distances(length))[None]) == [backwards]


def test_noise_of_the_size_of_an_initialization_and_a_faint_pattern_are_none():
    noise = np.random.default_rng(1).normal(0, 0.1, (40, 64, 64))
    faint = 1e-3 * HEADS["fades with distance"][1](distances(64))
    assert set(name_patterns([*noise, faint])) == {BROADLY}


@pytest.mark.parametrize("length", [9, 33, 80])
@pytest.mark.parametrize("area", ["near", "right"])
def test_names_change_where_the_docstring_says(length, area):
    words = length - 1
    reach = max(1, min(4, words // 8))
    distance = distances(words)
    near, left, right = np.abs(distance) <= reach, distance < 0, distance > 0
    found = []
    for logit in np.linspace(-4, 4, 161):
        matrix = np.zeros((length, length))
        matrix[1:, 1:] = logit * (near if area == "near" else right)
        weights = np.exp(matrix[1:, 1:])
        weights /= weights.sum(axis=1, keepdims=True)
        shares = [weights[where].sum() / words for where in (near, left, right, near | ~near)]
        even = near.sum() / words**2
        assert shares[3] == pytest.approx(1)
        if shares[1] - shares[2] >= 1 / 3:
            expected = PREVIOUS
        elif shares[2] - shares[1] >= 1 / 3:
            expected = NEXT
        elif shares[0] - even >= 0.25 * (1 - even):
            expected = LOCALLY
        else:
            expected = GLOBALLY if shares[0] <= 0.5 * even else BROADLY
        assert name_patterns(matrix[None]) == [expected]
        found.append(expected)
    ends = (GLOBALLY, LOCALLY) if area == "near" else (PREVIOUS, NEXT)
    assert list(dict.fromkeys(found)) == [ends[0], BROADLY, ends[1]]


@pytest.mark.parametrize("length", LENGTHS[2:])
@pytest.mark.parametrize(
    ("name", "logits"),
    [
        (BROADLY, lambda d: 0 * d),
        (LOCALLY, lambda d: np.where(d >= -2, 8.0, 0.0)),
        (GLOBALLY, lambda d: np.where(np.abs(d) <= 6, -6.0, 0.0)),
        (BROADLY, lambda d: -((d / np.abs(d).max()) ** 2)),
    ],
)
def test_seeing_nothing_of_what_comes_next_is_no_preference(name, logits, length):
    is_seen, matrix = distances(length) <= 0, logits(distances(length))
    unseen = np.where(is_seen, matrix, np.random.default_rng(0).normal(0, 50, matrix.shape))
    assert name_patterns(np.stack([matrix, unseen]), is_seen) == [name] * 2


@pytest.mark.parametrize("options", [{"window": 2}, {"window": 1, "causal": True, "every": 2}])
def test_seen_keys_are_those_of_the_pattern_in_each_block(options):
    backbone = TupeBackbone(
        9, 2, 2, 4, 6, position="none", attention_pattern="sliding_window", pattern_options=options
    )
    place = np.arange(7)
    distance = place[None, :] - place[:, None]
    for layer in range(2):
        expected = np.abs(distance) <= options["window"]
        if options.get("every") and layer % options["every"] == 0:
            expected = np.ones((7, 7), bool)
        expected &= (distance <= 0) | (not options.get("causal"))
        np.testing.assert_array_equal(seen_keys(backbone, 7, layer), expected)
    assert seen_keys(TupeBackbone(9, 1, 2, 4, 6), 3).all()
