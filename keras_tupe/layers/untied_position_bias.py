"""TUPE's absolute position correlation."""

import keras
from keras import ops

from keras_tupe.layers._parts import bias_spec, fresh
from keras_tupe.layers.attention.position_terms import matrix_of_parts
from keras_tupe.layers.position_projection import PositionProjection


@keras.saving.register_keras_serializable(package="keras_tupe")
class UntiedPositionBias(keras.layers.Layer):
    """Correlation of positions, untied from the words.

    Computed once per forward pass and shared by all layers of an encoder; it does not depend
    on the input, so that an exported encoder can hold it as a constant.

    Equation (Ke et al. 2021, eq. 7, second term):

        bias[h, i, j] = (LN(p_i) U^Q_h) . (LN(p_j) U^K_h) / sqrt(2 d)

    and, for `ClsReset` (Appendix B), with two more learned vectors p_th1, p_th2:

        theta_k[h] = (LN(p_thk) U^Q_h) . (LN(p_thk) U^K_h) / sqrt(2 d)

    Differences from the source: none in the equations. In the released code U^Q and U^K have
    biases (`use_bias=True`) and [CLS] has no vector of its own; here p_0 exists and is
    dead wherever [CLS] is reset.

    Args:
        num_heads: number of heads H.
        key_dim: size of each head d.
        max_sequence_length: number of positions.
        cls_theta: whether p_th1 and p_th2 exist. Defaults to `True`.
        use_bias: whether U^Q and U^K have biases. Defaults to `False`.
        epsilon: epsilon of the layer normalization. Defaults to 1e-5.
        initializer: Keras initializer of all vectors and kernels. Defaults to a normal of
            deviation 0.02.
        width: number of values of a vector of positions. Defaults to `None`: H * d; an encoder of
            which heads were removed has more.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.

    Returns:
        Position bias, unitless, `(1, num_heads, length, length)`, in at least float32.

    Masking: none; padding is masked later, in attention.

    Raises:
        ValueError: if a size is not a positive integer, or the length is known and above
            `max_sequence_length`.

    Example:
        >>> layer = UntiedPositionBias(num_heads=2, key_dim=4, max_sequence_length=16)
        >>> tuple(layer(keras.ops.zeros((3, 5, 8))).shape)
        (1, 2, 5, 5)

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        max_sequence_length,
        cls_theta=True,
        use_bias=False,
        epsilon=1e-5,
        initializer=None,
        width=None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.max_sequence_length = max_sequence_length
        self.use_bias = use_bias
        self.epsilon = epsilon
        self.cls_theta = cls_theta
        self.projection = PositionProjection(
            num_heads,
            key_dim,
            max_sequence_length,
            use_bias=use_bias,
            epsilon=epsilon,
            initializer=initializer,
            width=width,
            dtype=self.dtype_policy,
            name="projection",
        )
        self.initializer = self.projection.initializer
        self.width = self.projection.width
        self.scale = (2 * key_dim) ** -0.5

    def build(self, hidden_states_shape):
        self.projection.build(hidden_states_shape)
        if self.cls_theta:
            self.cls_embeddings = self.add_weight(
                shape=(2, self.width),
                initializer=fresh(self.projection.initializer),
                autocast=False,
                name="cls_embeddings",
            )

    def call(self, hidden_states):
        return matrix_of_parts(self.bias_parts(hidden_states), ops.shape(hidden_states)[1])

    def bias_parts(self, hidden_states):
        """Returns the bias by its factors: `query` and `key`, `(num_heads, length, key_dim)`.

        Args:
            hidden_states: as in the call arguments.
        """
        query, key = self.projection(hidden_states)  # (n, h, d)
        query, key = (ops.swapaxes(x, 0, 1) for x in (query * self.scale, key))
        return {"query": query, "key": key}

    def theta(self):
        """Returns theta_1 and theta_2 of the reset function, `(2, num_heads)`.

        Raises:
            ValueError: if the layer was made with `cls_theta=False`.
        """
        if not self.cls_theta:
            raise ValueError(
                "The layer has no vectors for [CLS]. Build it with `cls_theta=True`. "
                "Received: cls_theta=False"
            )
        query, key = self.projection.project(ops.convert_to_tensor(self.cls_embeddings))
        return ops.sum(query * self.scale * key, axis=-1)

    def compute_output_spec(self, hidden_states):
        self.projection.compute_output_spec(hidden_states)
        return bias_spec(self, hidden_states)

    def get_config(self):
        projection = self.projection.get_config()
        sizes = ("num_heads", "key_dim", "max_sequence_length", "use_bias", "epsilon", "width")
        return {
            **super().get_config(),
            **{key: projection[key] for key in (*sizes, "initializer")},
            "cls_theta": self.cls_theta,
        }
