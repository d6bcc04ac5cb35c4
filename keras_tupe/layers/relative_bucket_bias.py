"""T5's relative position bias, and its distance buckets in integers."""

import bisect

import keras
from keras import ops

from keras_tupe import check
from keras_tupe.layers._parts import take_rows
from keras_tupe.layers.position_bias import PositionBias


@keras.saving.register_keras_serializable(package="keras_tupe")
class RelativeBucketBias(PositionBias):
    """T5's relative position bias: one learned scalar per head and distance bucket.

    Equation (Raffel et al. 2020; Ke et al. 2021, eq. 5), unscaled:

        bias[h, i, j] = b[bucket(j - i), h]

    with half = num_buckets / 2, exact = half / 2 and, for distance m = |j - i|,

        bucket(j - i) = half * [j > i] + f(m)
        f(m) = m                                                         for m < exact
               min(half - 1, exact + floor((half - exact) * ln(m / exact)
                                           / ln(max_distance / exact)))  otherwise

    Bucket `half` would mean "to the right at distance 0" and is never produced.

    Differences from the source: bucket edges are computed in integers, so no rounding of a
    logarithm can move one; all distances of the released tables agree.

    Args:
        num_heads: number of attention heads.
        num_buckets: rows of the table, even and >= 4; if not `bidirectional`, >= 2. Defaults to 32.
        max_distance: distance, in tokens, from which on all share one bucket. Defaults to 128.
        bidirectional: whether keys to the right have buckets of their own; `False` for causal
            use, where all keys to the right share bucket 0. Defaults to `True`.
        initializer: Keras initializer of the table. Defaults to a normal of deviation 0.02.
        **kwargs: as of `PositionBias`, like the call arguments and the answer. Any length works.

    Example:
        >>> tuple(RelativeBucketBias(num_heads=4)(keras.ops.zeros((2, 9, 8))).shape)
        (1, 4, 9, 9)
    """

    def __init__(
        self,
        num_heads,
        num_buckets=32,
        max_distance=128,
        bidirectional=True,
        initializer=None,
        **kwargs,
    ):
        _check(num_buckets, max_distance, bidirectional)
        super().__init__(num_heads, initializer, **kwargs)
        self.num_buckets, self.max_distance = num_buckets, max_distance
        self.bidirectional = bidirectional

    def build(self, hidden_states_shape):
        shape = (self.num_buckets, self.num_heads)
        self.embeddings = self.add_table("embeddings", shape, self.initializer)

    def parts(self, length):
        rule = (self.num_buckets, self.max_distance, self.bidirectional)
        table = ops.cast(self.embeddings, self.table_dtype)
        rows = take_rows(table, relative_buckets(self.offsets(length), *rule))
        return {"distances": ops.transpose(rows)}


def _check(num_buckets, max_distance, bidirectional):
    fewest = 4 if bidirectional else 2  # half of a direction's are for one distance each
    check.integer("num_buckets", num_buckets, fewest, even=bidirectional)
    exact = num_buckets // fewest
    if not check.is_integer(max_distance) or max_distance <= exact:
        raise ValueError(
            f"`max_distance` must be an integer above {exact}, the number of distances with a "
            f"bucket of their own. Received: max_distance={max_distance!r}"
        )


def relative_buckets(distances, num_buckets=32, max_distance=128, bidirectional=True):
    """Returns the buckets of integers, key minus query position, as `RelativeBucketBias` says."""
    _check(num_buckets, max_distance, bidirectional)
    per_direction = num_buckets // 2 if bidirectional else num_buckets
    num_exact = per_direction // 2
    # Numbers are cast, as `floatx` may decide what dtype Keras gives those of Python.
    distances, offset = ops.cast(distances, "int32"), 0
    if bidirectional:
        offset = ops.cast(ops.greater(distances, 0), "int32") * per_direction
        distances = ops.abs(distances)
    else:
        distances = ops.maximum(-distances, ops.cast(0, "int32"))
    bucket = ops.minimum(distances, ops.cast(num_exact, "int32"))
    num_log = per_direction - num_exact
    for k in range(1, num_log):
        # Bucket `num_exact + k` begins at the smallest m with (m / exact)^L >= (max / exact)^k,
        # where L is the number of logarithmic buckets: a comparison of integers.
        bound = num_exact ** (num_log - k) * max_distance**k
        edge = bisect.bisect_left(range(max_distance), bound, key=lambda m: m**num_log)
        bucket = bucket + ops.cast(ops.greater_equal(distances, edge), "int32")
    return bucket + offset
