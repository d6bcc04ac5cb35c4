"""Every `floatx` of Keras: what is called, trained and exported stays right.

Gradients and the one graph of every length are those of `test_position_promises.py`.
"""

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import METHOD_NAMES, Case, encoder, inputs, outputs, random_ids

from keras_tupe.models import TupeMaskedLM, TupeSpanExtractor, TupeTextClassifier
from keras_tupe.trainer import adamw


def test_weights_of_two_dtypes_are_not_clipped_by_keras(tensorflow):
    model = encoder(Case("tupe_r"), "float16", num_layers=1)
    for task in (TupeMaskedLM(model), TupeSpanExtractor(model), TupeTextClassifier(model, 2)):
        with pytest.raises(ValueError, match=r"Received: weights in float16 and float32"):
            task.compile(adamw(1e-3))
        task.compile(keras.optimizers.AdamW(1e-3))
    TupeMaskedLM(encoder(Case("tupe_r"), "mixed_float16", num_layers=1)).compile(adamw(1e-3))


@pytest.mark.parametrize("floatx", ["float16", "bfloat16"], indirect=True)
@pytest.mark.parametrize("name", ["tupe_r", "qkr_3"])
def test_half_precision_by_default_answers_as_float32_beside_a_row_of_padding(name, floatx):
    given = inputs(random_ids(3, 7), lengths=[7, 4, 0])
    wanted = outputs(encoder(Case(name), "float32", num_layers=1), given)
    found = outputs(encoder(Case(name), dtype=None, num_layers=1), given)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=0.05 if floatx == "float16" else 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("floatx", ["float64", "float16"], indirect=True)
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_is_trained(name, floatx):
    model = TupeMaskedLM(encoder(Case(name), dtype=None, num_layers=1))
    model.compile(keras.optimizers.AdamW(1e-3), jit_compile=False)
    given = {**inputs(random_ids(3, 7)), "mask_positions": np.array([[1, 2]] * 3, "int32")}
    assert np.isfinite(float(model.train_on_batch(given, random_ids(3, 2))[0]))
    for weight in model.weights:
        assert np.isfinite(ops.convert_to_numpy(ops.cast(weight, "float64"))).all(), weight.path
