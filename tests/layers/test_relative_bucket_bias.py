import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import RelativeBucketBias
from keras_tupe.layers.relative_bucket_bias import relative_buckets


@pytest.mark.parametrize("bidirectional", [True, False])
def test_layer_contract(tmp_path, bidirectional):
    run_layer_contract(
        RelativeBucketBias,
        lambda dtype: {
            "num_heads": 2,
            "num_buckets": 8,
            "max_distance": 20,
            "bidirectional": bidirectional,
            "initializer": "random_normal",
        },
        {"hidden_states": np.zeros((3, 7, 10), "float32")},
        output_shape=(1, 2, 7, 7),
        num_weights=1,
        folder=tmp_path,
        is_position_term=True,
    )


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


@pytest.mark.parametrize("length", [1, 2, 7, 137])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_entry_i_j_is_the_value_of_the_bucket_of_j_minus_i(length, bidirectional):
    layer = RelativeBucketBias(3, bidirectional=bidirectional, dtype="float64")
    layer.build((None, None, 4))
    table = np.random.normal(size=(32, 3))
    layer.embeddings.assign(table)
    bias = ops.convert_to_numpy(layer(np.zeros((2, length, 4))))
    i, j = np.meshgrid(np.arange(length), np.arange(length), indexing="ij")
    rows = np.array(buckets(j - i, 32, 128, bidirectional))
    np.testing.assert_array_equal(bias, table[rows].transpose(2, 0, 1)[None])


@pytest.mark.parametrize("num_buckets", [7, 2, 0, -8, 8.0, "8", None, True])
def test_odd_or_too_few_buckets_are_refused(num_buckets):
    message = "`num_buckets` must be an even integer >= 4(.|\n)*Received: num_buckets="
    with pytest.raises(ValueError, match=message):
        RelativeBucketBias(2, num_buckets=num_buckets)


def test_causal_use_needs_two_buckets_and_may_have_an_odd_number():
    RelativeBucketBias(2, num_buckets=3, bidirectional=False)
    with pytest.raises(ValueError, match="`num_buckets` must be an integer >= 2"):
        RelativeBucketBias(2, num_buckets=1, bidirectional=False)


@pytest.mark.parametrize("max_distance", [8, 1, 0, -5, 9.5, None])
def test_a_largest_distance_inside_the_exact_buckets_is_refused(max_distance):
    with pytest.raises(ValueError, match=r"an integer above 8(.|\n)*Received: max_distance="):
        RelativeBucketBias(2, max_distance=max_distance)


@pytest.mark.parametrize("num_heads", [0, -1, 2.0, "2", None])
def test_impossible_numbers_of_heads_are_refused(num_heads):
    with pytest.raises(ValueError, match="`num_heads` must be a positive integer"):
        RelativeBucketBias(num_heads)
