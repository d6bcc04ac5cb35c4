"""T5's distance buckets."""

import math

import hypothesis
import numpy as np
from hypothesis import strategies as st
from keras import ops

from keras_tupe.layers.relative_bucket_bias import relative_buckets


def buckets(distances, *args):
    return ops.convert_to_numpy(relative_buckets(np.asarray(distances), *args)).tolist()


def test_the_first_distances_of_the_logarithmic_buckets_are_the_published_ones():
    first = [8, 12, 16, 23, 32, 46, 64, 91]
    assert buckets([-m for m in first]) == list(range(8, 16))
    assert buckets([1 - m for m in first]) == list(range(7, 15))
    assert buckets(first) == list(range(24, 32))
    assert buckets(range(8)) == [0, 17, 18, 19, 20, 21, 22, 23]
    assert buckets([-m for m in range(8)]) == list(range(8))
    assert buckets([-127, -128, -10_000, 127, 128, 10_000]) == [15] * 3 + [31] * 3


def test_the_bucket_of_distance_0_to_the_right_is_never_produced():
    produced = set(buckets(range(-1000, 1001)))
    assert produced == set(range(32)) - {16}


@hypothesis.given(
    half=st.integers(2, 40), max_distance=st.integers(2, 3000), bidirectional=st.booleans()
)
@hypothesis.settings(max_examples=25)
def test_buckets_equal_the_logarithm_of_the_paper(half, max_distance, bidirectional):
    exact = half // 2
    hypothesis.assume(max_distance > exact)
    distances = np.concatenate([np.arange(-300, 301), [-max_distance, max_distance, 10**6]])
    num_buckets = 2 * half if bidirectional else half
    got = buckets(distances, num_buckets, max_distance, bidirectional)
    for distance, bucket in zip(distances.tolist(), got, strict=True):
        m = abs(distance) if bidirectional else max(-distance, 0)
        if m < exact:
            wanted = {m}
        else:
            steps = (half - exact) * math.log(m / exact) / math.log(max_distance / exact)
            # At a whole number of steps the logarithm's last bit decides; both sides are right.
            wanted = {min(half - 1, exact + math.floor(steps + e)) for e in (-1e-9, 1e-9)}
        if bidirectional and distance > 0:
            wanted = {bucket + half for bucket in wanted}
        assert bucket in wanted, (distance, bucket, wanted)
