"""T5's distance buckets, in integers."""

from keras import ops

from keras_tupe.layers._checks import is_integer


def relative_buckets(distances, num_buckets=32, max_distance=128, bidirectional=True):
    """Returns the bucket of each distance (the rule of `RelativeBucketBias`).

    Args:
        distances: integer array or tensor, key minus query position.
        num_buckets: number of buckets; even and >= 4 if `bidirectional`, else >= 2.
        max_distance: distance in tokens from which on all share the last bucket.
        bidirectional: whether the two directions have buckets of their own.

    Returns:
        int32 tensor of the shape of `distances`, values in `[0, num_buckets)`.

    Raises:
        ValueError: if `num_buckets` or `max_distance` is impossible.
    """
    if bidirectional and (not is_integer(num_buckets) or num_buckets < 4 or num_buckets % 2):
        raise ValueError(
            "`num_buckets` must be an even integer >= 4, because half of the buckets serve each "
            f"direction and half of those are exact. Received: num_buckets={num_buckets!r}"
        )
    if not is_integer(num_buckets) or num_buckets < 2:
        raise ValueError(
            "`num_buckets` must be an integer >= 2, because half of the buckets are exact. "
            f"Received: num_buckets={num_buckets!r}"
        )
    per_direction = num_buckets // 2 if bidirectional else num_buckets
    num_exact = per_direction // 2
    if not is_integer(max_distance) or max_distance <= num_exact:
        raise ValueError(
            f"`max_distance` must be an integer above {num_exact}, the number of distances with an "
            f"exact bucket. Received: max_distance={max_distance!r}"
        )
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
