"""A causal model that answers with losses."""

import keras


class TokenLosses(keras.Model):
    """A causal language model whose outputs are the losses of labels that are among its inputs.

    Args:
        model: the `TupeCausalLM`.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.built = True

    def call(self, inputs, training=None):
        inputs = dict(inputs)
        return self.model.token_losses(inputs, inputs.pop("labels"))
