"""T5's relative position bias."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._parts import at_least_float32, bias_spec, take_rows
from keras_tupe.layers._relative_buckets import relative_buckets
from keras_tupe.layers.attention.position_terms import matrix_of_parts


@keras.saving.register_keras_serializable(package="keras_tupe")
class RelativeBucketBias(keras.layers.Layer):
    """T5's relative position bias: one learned scalar per head and distance bucket.

    Computed once per forward pass and shared by all layers of an encoder.

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
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used, any length works.

    Returns:
        Position bias, unitless, `(1, num_heads, length, length)`, in at least float32.

    Masking: none; padding is masked later, in attention.

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
        super().__init__(autocast=False, **kwargs)
        check_positive_integers(num_heads=num_heads)
        relative_buckets([0], num_buckets, max_distance, bidirectional)  # checks the settings
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.initializer = keras.initializers.get(
            keras.initializers.RandomNormal(stddev=0.02) if initializer is None else initializer
        )

    def build(self, hidden_states_shape):
        self.embeddings = self.add_weight(
            shape=(self.num_buckets, self.num_heads),
            initializer=self.initializer,
            autocast=False,
            name="embeddings",
        )

    def call(self, hidden_states):
        return matrix_of_parts(self.bias_parts(hidden_states), ops.shape(hidden_states)[1])

    def bias_parts(self, hidden_states):
        """Returns the bias by distance: `distances`, `(num_heads, 2 * length)`.

        Args:
            hidden_states: as in the call arguments.
        """
        length = ops.shape(hidden_states)[1]
        distances = ops.arange(2 * length, dtype="int32") - (length - 1)
        buckets = relative_buckets(
            distances, self.num_buckets, self.max_distance, self.bidirectional
        )
        table = ops.cast(self.embeddings, at_least_float32(self.compute_dtype))
        return {"distances": ops.transpose(take_rows(table, buckets))}

    def compute_output_spec(self, hidden_states):
        return bias_spec(self, hidden_states)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
            "initializer": keras.initializers.serialize(self.initializer),
        }
