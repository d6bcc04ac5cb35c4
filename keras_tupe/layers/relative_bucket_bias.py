"""T5's relative position bias, and its distance buckets in integers."""

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

    Differences from the source: bucket edges are computed in integers, so no rounding of a
    logarithm can move one; all distances of the released tables agree.

    Args:
        num_heads: number of attention heads.
        num_buckets: rows of the table, an even integer >= 4. Defaults to 32.
        max_distance: distance, in tokens, from which on all share one bucket. Defaults to 128.
        bidirectional: whether keys to the right have buckets of their own; `False` for causal
            use, where all keys to the right share bucket 0. Defaults to `True`.
        initializer: Keras initializer of the table. Defaults to a normal of deviation 0.02.
        **kwargs: as of `PositionBias`, like the call arguments and the answer. Any length works.

    Raises:
        ValueError: if `num_heads`, `num_buckets` or `max_distance` is impossible.

    Notes:
        Bucket `half` means "to the right at distance 0" and is never produced.

    Example:
        >>> tuple(RelativeBucketBias(num_heads=4)(keras.ops.zeros((2, 9, 8))).shape)
        (1, 4, 9, 9)

    References:
        Raffel et al. Exploring the Limits of Transfer Learning. JMLR 2020.
        https://arxiv.org/abs/1910.10683
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
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional

    def build(self, hidden_states_shape):
        shape = (self.num_buckets, self.num_heads)
        self.embeddings = self.add_table("embeddings", shape, self.initializer)

    def parts(self, length):
        buckets = relative_buckets(
            self.offsets(length), self.num_buckets, self.max_distance, self.bidirectional
        )
        table = ops.cast(self.embeddings, self.table_dtype)
        return {"distances": ops.transpose(take_rows(table, buckets))}


def _check(num_buckets, max_distance, bidirectional):
    """Refuses impossible settings; half of the buckets of a direction are for one distance each."""
    check.integer("num_buckets", num_buckets, 4 if bidirectional else 2, even=bidirectional)
    exact = num_buckets // (4 if bidirectional else 2)
    if not check.is_integer(max_distance) or max_distance <= exact:
        raise ValueError(
            f"`max_distance` must be an integer above {exact}, the number of distances with a "
            f"bucket of their own. Received: max_distance={max_distance!r}"
        )


def relative_buckets(distances, num_buckets=32, max_distance=128, bidirectional=True):
    """Returns the bucket of each distance, int32, by the rule of `RelativeBucketBias`.

    Args:
        distances: integer array or tensor, key minus query position.
        num_buckets: number of buckets; even and >= 4 if `bidirectional`, else >= 2.
        max_distance: distance in tokens from which on all share the last bucket.
        bidirectional: whether the two directions have buckets of their own.
    """
    _check(num_buckets, max_distance, bidirectional)
    per_direction = num_buckets // 2 if bidirectional else num_buckets
    num_exact = per_direction // 2
    # Numbers are cast, as `floatx` may decide what dtype Keras gives those of Python.
    distances, zero = ops.cast(distances, "int32"), ops.cast(0, "int32")
    offset = 0
    if bidirectional:
        offset = ops.cast(ops.greater(distances, 0), "int32") * per_direction
        distances = ops.abs(distances)
    else:
        distances = ops.maximum(-distances, zero)
    bucket = ops.minimum(distances, ops.cast(num_exact, "int32"))
    for edge in _log_bucket_edges(num_exact, per_direction, max_distance):
        bucket = bucket + ops.cast(ops.greater_equal(distances, edge), "int32")
    return bucket + offset


def _log_bucket_edges(num_exact, per_direction, max_distance):
    """Returns the first distance of every logarithmic bucket but the first one.

    Bucket `num_exact + k` starts at the smallest m with (m / exact)^L >= (max / exact)^k,
    where L is the number of logarithmic buckets: a comparison of integers.
    """
    num_log = per_direction - num_exact
    edges, edge = [], num_exact
    for k in range(1, num_log):
        bound = num_exact ** (num_log - k) * max_distance**k
        low, high = edge, max_distance
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if middle**num_log >= bound else (middle + 1, high)
        edge = low
        edges.append(edge)
    return edges
