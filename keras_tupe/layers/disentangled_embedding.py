"""Token vectors of another model plus a difference of one's own."""

import keras
from keras import ops

from keras_tupe.layers.token_embedding import TokenEmbedding


@keras.saving.register_keras_serializable(package="keras_tupe")
class DisentangledEmbedding(TokenEmbedding):
    """A `TokenEmbedding` over that of another model, which it does not train.

    Equation (He et al. 2023, section 3.2):

        E = stop_gradient(E_base) + D,    D = 0 at the start

    Only D learns by what this layer is used for; E_base by what the other model is.

    Args:
        base: the `TokenEmbedding` of the other model.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments, answers and errors are those of `TokenEmbedding`.

    Example:
        >>> base = keras_tupe.layers.TokenEmbedding(vocabulary_size=11, hidden_dim=8)
        >>> tuple(DisentangledEmbedding(base)(np.array([[1, 2, 3]])).shape)
        (1, 3, 8)
    """

    def __init__(self, base, **kwargs):
        super().__init__(base.vocabulary_size, base.hidden_dim, **kwargs)
        self.base = base

    def build(self, inputs_shape=None):
        if not self.base.built:
            self.base.build()
        shape = (self.vocabulary_size, self.hidden_dim)
        self.difference = self.add_weight(
            shape, "zeros", autocast=False, name="embeddings_difference"
        )

    @property
    def embeddings(self):
        """The vectors, `(vocabulary_size, hidden_dim)`."""
        base = ops.convert_to_tensor(self.base.embeddings)
        return ops.stop_gradient(base) + ops.convert_to_tensor(self.difference)
