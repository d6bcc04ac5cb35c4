"""Every positional method under every `floatx` of Keras: called, trained, compiled and exported.

Under "float64" gradients and the one graph for every length are computed in every run of the tests
(`test_position_promises.py`).
"""

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import METHOD_NAMES, Case, encoder, inputs, outputs, random_ids

from keras_tupe.models import TupeMaskedLM, TupeSpanExtractor, TupeTextClassifier
from keras_tupe.trainer import Trainer, adamw

GIVEN = inputs(random_ids(3, 7), lengths=[7, 4, 0])  # one row is padding alone
TOLERANCES = {"float32": 1e-4, "float64": 1e-10, "float16": 0.05, "bfloat16": 0.3}


def check_training(trained, model, optimizer, **settings):
    """Trains a step of masked language modeling and checks that all weights are finite."""
    where = np.array([[1, 2], [1, 2], [0, 0]], "int32")
    weights = np.array([[1, 1], [1, 0], [0, 0]], "float32")
    trained.compile(optimizer, **settings)
    given = {"sample_weight": weights, "batch_size": 3, "verbose": 0}
    history = trained.fit({**GIVEN, "mask_positions": where}, random_ids(3, 2), **given)
    assert np.isfinite(float(history.history["loss"][0]))
    for weight in model.weights:
        values = ops.convert_to_numpy(ops.cast(weight, "float64"))
        assert np.isfinite(values).all(), weight.path


def check_outputs(got, wanted, floatx):
    for name, value in wanted.items():
        found = ops.convert_to_numpy(ops.cast(got[name], "float64"))
        np.testing.assert_allclose(found, value, rtol=0, atol=TOLERANCES[floatx])


def eager_outputs(model):
    found = dict(zip(("sequence_output", "pooled_output"), outputs(model, GIVEN), strict=True))
    assert all(np.isfinite(value).all() for value in found.values())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("floatx", ["float64", "float16"], indirect=True)
def test_the_trainer_takes_every_floatx(floatx):
    model = TupeMaskedLM(encoder(Case("tupe_r"), dtype=None, num_layers=1))
    check_training(Trainer(model), model, adamw(1e-3))


def test_weights_of_two_dtypes_are_not_clipped_by_keras(tensorflow):
    model = encoder(Case("tupe_r"), "float16", num_layers=1)
    for task in (TupeMaskedLM(model), TupeSpanExtractor(model), TupeTextClassifier(model, 2)):
        with pytest.raises(ValueError, match=r"Received: weights in float16 and float32"):
            task.compile(adamw(1e-3))
        task.compile(keras.optimizers.AdamW(1e-3))
    TupeMaskedLM(encoder(Case("tupe_r"), "mixed_float16", num_layers=1)).compile(adamw(1e-3))


@pytest.mark.parametrize("floatx", ["float16", "bfloat16"], indirect=True)
@pytest.mark.parametrize("name", ["tupe_r", "qkr_3"])
def test_a_row_of_padding_alone_is_finite_in_half_precision(name, floatx):
    wanted = eager_outputs(encoder(Case(name), "float32", num_layers=1))
    check_outputs(eager_outputs(encoder(Case(name), dtype=None, num_layers=1)), wanted, floatx)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Gradients do not exist for variables .'pooled_dense")
@pytest.mark.parametrize("floatx", list(TOLERANCES), indirect=True)
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_is_called_fitted_compiled_and_exported(name, floatx, tensorflow, tmp_path):
    from keras_tupe.export import export_encoder

    for options in ({}, {"cls": "untied"}, {"cls": "tied"}, {"k": 2}):
        if options.keys() <= Case(name).method.options.keys():
            model = encoder(Case(name, tuple(options.items())), dtype=None, num_layers=1)
            eager = eager_outputs(model)
            model.compile(jit_compile=False)
            check_outputs(model.predict(GIVEN, verbose=0), eager, floatx)
    model, compiled = (encoder(Case(name), dtype=None, num_layers=1) for _ in range(2))
    eager = eager_outputs(model)
    compiled.compile(jit_compile=True)
    check_outputs(compiled.predict(GIVEN, verbose=0), eager, floatx)
    export_encoder(model, tmp_path / "encoder", length=7)
    loaded = tensorflow.saved_model.load(str(tmp_path / "encoder"))
    encode = loaded.signatures["encode"]
    given = {
        name: tensorflow.constant(GIVEN.get(name, np.zeros((3, 7), "int32")))
        for name in encode.structured_input_signature[1]
    }
    tolerance = floatx if floatx.endswith("16") else "float32"  # exports answer in float32
    check_outputs(encode(**given), eager, tolerance)
    model = TupeMaskedLM(model)
    for jit_compile in (False, True):
        check_training(model, model, keras.optimizers.AdamW(1e-3), jit_compile=jit_compile)
