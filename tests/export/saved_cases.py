"""A masked language model to export, the same every time, with random values in all weights."""

import keras
import numpy as np

from keras_tupe import TupeBackbone, TupeMaskedLM

LETTERS = "abcdefghij"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
LENGTH, MAX_LENGTH = 5, 7  # of the signatures of `exported_model`, and of its table


def scrambled_model(dtype="float32", num_layers=1, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = TupeBackbone(
        len(VOCABULARY), num_layers, 2, 6, 11, max_sequence_length=MAX_LENGTH, dtype=dtype, **kwargs
    )
    model = TupeMaskedLM(backbone)
    generator = np.random.default_rng(5)
    for variable in model.trainable_variables:
        variable.assign(generator.normal(size=variable.shape) * 0.5)
    return model


def exported_model():
    """With segments and dropout, and with a regularizer of the pooler."""
    model = scrambled_model(num_segments=2, dropout=0.5)
    model.backbone.get_layer("pooled_dense").kernel.regularizer = keras.regularizers.L2(0.1)
    return model
