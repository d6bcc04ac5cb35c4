"""Models that take longer sequences than they were made for."""

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import METHOD_NAMES, Case, by_kind, encoder, inputs, outputs, random_ids

from keras_tupe import positions
from keras_tupe.models import (
    TupeBackbone,
    TupeMaskedLM,
    TupeTextClassifier,
    TupeTextClassifierPreprocessor,
    TupeTokenizer,
    extend_positions,
)

EXTENDABLE = [name for name in METHOD_NAMES if positions.get(name).absolute_tables]
OLD, NEW = 17, 29


def table_of(model, name):
    (end,) = positions.get(name).absolute_tables
    (found,) = [weight for weight in model.weights if weight.path.endswith(end)]
    return ops.convert_to_numpy(found)


def test_the_methods_with_rows_per_position_can_be_extended():
    assert {"absolute", "bert_r", "tupe_a", "tupe_r", "bert_ad"} <= set(EXTENDABLE)
    assert not {"none", "t5", "shaw", "qkr_4", "rope", "free_table"} & set(EXTENDABLE)


@pytest.mark.parametrize(
    "case", by_kind(map(Case, EXTENDABLE), also=lambda case: case.method.absolute_tables)
)
def test_an_extended_encoder_takes_longer_sequences_and_keeps_all_else(case):
    model = encoder(case, num_layers=1)
    before = [ops.convert_to_numpy(weight) for weight in model.weights]
    for how in ("interpolate", "repeat", "drop_absolute"):
        extended = extend_positions(model, NEW, how)
        assert extended.max_sequence_length == NEW
        assert {**extended.get_config(), "max_sequence_length": OLD} == model.get_config()
        answer = outputs(extended, inputs(random_ids(2, NEW)))
        assert answer[0].shape == (2, NEW, 10)
        assert np.isfinite(answer[0]).all()
        for old, new, value in zip(model.weights, extended.weights, before, strict=True):
            np.testing.assert_array_equal(ops.convert_to_numpy(old), value)  # the model stays
            assert old.path == new.path
            if old.shape == new.shape:
                np.testing.assert_array_equal(ops.convert_to_numpy(new), value)
            else:
                assert (old.shape[0], new.shape[0]) == (OLD, NEW)
                assert old.path.endswith(case.method.absolute_tables)


def test_interpolation_is_linear_and_leaves_cls_alone():
    model = encoder(Case("tupe_r"))
    old = table_of(model, "tupe_r")
    new = table_of(extend_positions(model, 1 + 2 * (OLD - 1) - 1), "tupe_r")  # twice as dense
    np.testing.assert_array_equal(new[0], old[0])
    np.testing.assert_allclose(new[1::2], old[1:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(new[2::2], (old[1:-1] + old[2:]) / 2, rtol=0, atol=1e-12)


def test_repetition_starts_over_behind_cls_and_answers_short_texts_as_before():
    model = encoder(Case("absolute"))
    extended = extend_positions(model, NEW, "repeat")
    old, new = table_of(model, "absolute"), table_of(extended, "absolute")
    np.testing.assert_array_equal(new[:OLD], old)
    np.testing.assert_array_equal(new[OLD:], old[1 : 1 + NEW - OLD])
    given = inputs(random_ids(2, OLD))
    for got, wanted in zip(outputs(extended, given), outputs(model, given), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("name", "without"), [("absolute", "none"), ("bert_r", "t5")])
def test_dropping_absolute_positions_gives_the_method_without_them(name, without):
    extended = extend_positions(encoder(Case(name)), NEW, "drop_absolute")
    assert (table_of(extended, name) == 0).all()
    other = encoder(Case(without))
    values = {weight.path: weight for weight in extended.weights}
    for weight in other.weights:
        weight.assign(values[weight.path])
    given = inputs(random_ids(2, NEW))
    for got, wanted in zip(outputs(extended, given), outputs(other, given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


def test_tasks_keep_their_head_their_preprocessor_and_their_precision():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
    preprocessor = TupeTextClassifierPreprocessor(TupeTokenizer(words), sequence_length=8)
    backbone = TupeBackbone(8, 1, 2, 16, 32, max_sequence_length=8, dtype="mixed_bfloat16")
    model = TupeTextClassifier(backbone, 3, preprocessor, activation="softmax", name="mine")
    extended = extend_positions(model, 12, "repeat")
    assert (extended.name, extended.num_classes, extended.activation) == (
        "mine", 3, model.activation
    )  # fmt: skip
    assert extended.preprocessor is preprocessor
    assert extended.backbone.dtype_policy.name == "mixed_bfloat16"
    texts = ["the cat", "sat"]
    np.testing.assert_array_equal(
        extended.predict(texts, verbose=0), model.predict(texts, verbose=0)
    )
    masked = TupeMaskedLM(TupeBackbone(8, 1, 2, 16, 32, max_sequence_length=8))
    longer = extend_positions(masked, 12)
    given = {**inputs(random_ids(1, 12) % 8), "mask_positions": np.array([[11]], "int32")}
    assert np.isfinite(ops.convert_to_numpy(longer(given))).all()


@pytest.mark.parametrize(
    ("old", "length"),
    [(40, 45), *(pytest.param(512, n, marks=pytest.mark.slow) for n in (576, 640, 704))],
)
@pytest.mark.parametrize(
    ("name", "k"), [("qkr_4", lambda old: old // 2), ("qkr_3", lambda old: 8), ("tupe_r", None)]
)
def test_a_model_trains_at_huangs_fine_tuning_lengths(name, k, old, length):
    options = {"k": k(old)} if k else {}
    model = TupeBackbone(
        50, 1, 2, 16, 32, position=name, position_options=options, max_sequence_length=old
    )
    if model.has_length_limit:
        model = extend_positions(model, length)
    ids = np.random.default_rng(0).integers(5, 50, (2, length), "int32")
    trained = keras.Model(model.inputs, model.output["sequence_output"])
    trained.compile(keras.optimizers.SGD(0.1), loss="mse", jit_compile=False)
    given = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    loss = trained.train_on_batch(given, np.zeros((2, length, 16), "float32"))
    assert np.isfinite(loss)


@pytest.mark.parametrize(
    ("position", "options", "message"),
    [
        ("none", {}, "any length as it is"),
        ("rope", {}, "any length as it is"),
        ("shaw", {"k": 4}, "any length as it is"),
        ("shaw", {}, "with a clipping distance `k`"),
        ("free_table", {}, "cannot be made longer"),
    ],
)
def test_methods_without_rows_per_position_say_what_to_do(position, options, message):
    model = encoder(Case(position, tuple(options.items())))
    with pytest.raises(ValueError, match=f"no table with one row per position(.|\n)*{message}"):
        extend_positions(model, NEW)


def test_bad_arguments_are_refused():
    model = encoder(Case("absolute"))
    for length in (OLD, OLD - 1, 0, 20.5, "20", None):
        with pytest.raises(ValueError, match=rf"max_sequence_length={OLD}(.|\n)*new_length="):
            extend_positions(model, length)
    with pytest.raises(ValueError, match="`how` must be one of(.|\n)*Received: how='stretch'"):
        extend_positions(model, NEW, how="stretch")
    with pytest.raises(TypeError, match="must be a `TupeBackbone` or a task(.|\n)*Received:"):
        extend_positions(keras.Sequential(), NEW)
    shortest = encoder(Case("absolute"), max_sequence_length=1)
    with pytest.raises(ValueError, match="no rows to stretch or repeat"):
        extend_positions(shortest, NEW)
    assert extend_positions(shortest, NEW, "drop_absolute").max_sequence_length == NEW
