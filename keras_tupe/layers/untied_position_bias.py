"""TUPE's absolute position correlation."""

import keras
from keras import ops

from keras_tupe.layers.position_bias import PositionBias
from keras_tupe.layers.position_projection import PositionProjection


@keras.saving.register_keras_serializable(package="keras_tupe")
class UntiedPositionBias(PositionBias):
    """Correlation of positions, untied from the words.

    Equation (Ke et al. 2021, eq. 7, second term):

        bias[h, i, j] = (LN(p_i) U^Q_h) . (LN(p_j) U^K_h) / sqrt(2 d)

    and, for `ClsReset` (Appendix B), with two more learned vectors p_th1, p_th2:

        theta_k[h] = (LN(p_thk) U^Q_h) . (LN(p_thk) U^K_h) / sqrt(2 d)

    Differences from the source: in the released code U^Q and U^K have biases (`use_bias=True`) and
    [CLS] has no vector of its own; here p_0 exists and is dead wherever [CLS] is reset.

    Args:
        num_heads, key_dim, max_sequence_length, use_bias, epsilon, initializer, width: as of
            `PositionProjection`.
        cls_theta: whether p_th1 and p_th2 exist. Defaults to `True`.
        **kwargs: as of `PositionBias`, like the call arguments and the answer.

    Example:
        >>> tuple(UntiedPositionBias(2, 4, max_sequence_length=16)(ops.zeros((3, 5, 8))).shape)
        (1, 2, 5, 5)
    """

    kinds = ("query", "key")

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
        super().__init__(num_heads, **kwargs)
        self.key_dim = self.rank = key_dim
        self.max_sequence_length = max_sequence_length
        self.cls_theta, self.use_bias, self.epsilon = cls_theta, use_bias, epsilon
        given = {"use_bias": use_bias, "epsilon": epsilon, "initializer": initializer}
        given |= {"width": width, "dtype": self.dtype_policy, "name": "projection"}
        self.projection = PositionProjection(num_heads, key_dim, max_sequence_length, **given)
        self.initializer, self.width = self.projection.initializer, self.projection.width
        self.scale = (2 * key_dim) ** -0.5

    def build(self, hidden_states_shape):
        self.projection.build(hidden_states_shape)
        if self.cls_theta:
            self.cls_embeddings = self.add_table("cls_embeddings", (2, self.width))

    def parts(self, length):
        query, key = (ops.swapaxes(x, 0, 1) for x in self.projection.rows(length))  # (h, n, d)
        return {"query": query * self.scale, "key": key}

    def theta(self):
        """Returns theta_1 and theta_2 of the reset function, `(2, num_heads)`."""
        if not self.cls_theta:
            raise ValueError(
                "The layer has no vectors for [CLS]. Build it with `cls_theta=True`. "
                "Received: cls_theta=False"
            )
        query, key = self.projection.project(ops.convert_to_tensor(self.cls_embeddings))
        return ops.sum(query * self.scale * key, axis=-1)
