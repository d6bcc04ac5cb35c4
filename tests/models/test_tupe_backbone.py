"""The encoder: wiring, files, and what it does on every path."""

import itertools
import json

import keras
import keras_hub
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from position_cases import (
    ENCODER_CASES,
    METHOD_NAMES,
    Case,
    by_kind,
    encoder,
    inputs,
    outputs,
    random_ids,
    shared_encoder,
)
from tolerances import in_float64

import keras_tupe
from keras_tupe.models import TupeBackbone
from keras_tupe.trunk.trunk import _ZeroPadded
from training.check_method.numpy_encoder import encode

TUPE_R = Case("tupe_r")


def assert_same(model, other, given):
    for got, wanted in zip(outputs(other, given), outputs(model, given), strict=True):
        np.testing.assert_array_equal(got, wanted)


# Each switch both ways, and both ways of every other one.
PAIRWISE = [(False, False, 0), (False, True, 3), (True, False, 3), (True, True, 0)]


@pytest.mark.parametrize(
    ("normalize_first", "zero_padded", "num_segments"),
    [
        pytest.param(*switches, marks=[] if switches in PAIRWISE else pytest.mark.slow)
        for switches in itertools.product([False, True], [False, True], [0, 3])
    ],
)
@pytest.mark.parametrize("name", ["tupe_r", "bert_r"])
def test_every_switch_of_the_trunk_does_what_it_says(
    name, normalize_first, zero_padded, num_segments
):
    model = encoder(
        Case(name),
        num_segments=num_segments,
        normalize_first=normalize_first,
        zero_padded_embeddings=zero_padded,
        layer_norm_epsilon=0.03,
    )
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    if num_segments:
        given["segment_ids"] = random_ids(3, 7, seed=2).astype("int32") % num_segments
    wanted = encode(model, given, normalize_first=normalize_first, zero_padded=zero_padded)
    got = outputs(model, given)
    if not zero_padded:  # else padded queries differ too, and they are compared with care
        real = given["padding_mask"].astype(bool)
        got, wanted = (got[0][real], got[1]), (wanted[0][real], wanted[1])
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=in_float64(1e-11))


def test_files_of_before_lack_what_came_later_and_those_of_newer_versions_say_so():
    plain = encoder(TUPE_R, scale=None)
    later = ("activation", "normalize_embeddings", "embedding_dim", "num_groups", "kept_heads")
    later += ("memory_length", "segment_length")
    older = {name: value for name, value in plain.get_config().items() if name not in later}
    assert TupeBackbone.from_config(older).get_config() == plain.get_config()
    with pytest.raises(ValueError, match="no argument 'shape'.*of a newer version.*stays as it is"):
        TupeBackbone.from_config({**older, "shape": "round"})


def test_the_arguments_of_gpt_2_change_the_trunk():
    changes = {"activation": "gelu_approximate", "normalize_embeddings": False}
    plain, model = encoder(TUPE_R, scale=None), encoder(TUPE_R, scale=None, **changes)
    paths = [{weight.path for weight in each.weights} for each in (plain, model)]
    gone = {f"embeddings_layer_norm/{name}" for name in ("gamma", "beta")}
    assert paths[0] - paths[1] == gone
    assert paths[1] <= paths[0]
    for each, expected in ((model, changes), (plain, {})):
        again = TupeBackbone.from_config(each.get_config())
        assert again.get_config() == each.get_config()
        for name, value in expected.items():
            assert getattr(again, name) == value
    with pytest.raises(ValueError, match="Did you mean 'gelu'.*Received: activation='gelo'"):
        TupeBackbone(13, 1, 2, 8, 8, activation="gelo")


def test_layer_contract_of_the_zeroed_padding(tmp_path):
    run_layer_contract(
        _ZeroPadded,
        lambda dtype: {},
        {
            "hidden_states": np.random.normal(size=(3, 7, 11)).astype("float32"),
            "padding_mask": np.tile(np.arange(7) < 5, (3, 1)).astype("int32"),
        },
        output_shape=(3, 7, 11),
        num_weights=0,
        folder=tmp_path,
    )


def test_pooled_output_is_a_tanh_layer_over_the_first_token():
    model = shared_encoder(TUPE_R)
    sequence, pooled = outputs(model, inputs(random_ids(3, 7)))
    dense = model.get_layer("pooled_dense")
    kernel, bias = (ops.convert_to_numpy(weight) for weight in (dense.kernel, dense.bias))
    np.testing.assert_allclose(
        pooled, np.tanh(sequence[:, 0] @ kernel + bias), atol=in_float64(1e-12)
    )


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16", "float32", "float64"])
def test_weights_are_kept_in_the_variable_dtype_of_the_policy(dtype):
    model = encoder(TUPE_R, dtype, scale=None)
    assert model.dtype_policy.name == dtype
    wanted = "float64" if dtype == "float64" else "float32"
    assert {keras.backend.standardize_dtype(weight.dtype) for weight in model.weights} == {wanted}


def test_new_weights_are_drawn_apart_with_the_deviation_asked_for():
    model = TupeBackbone(50, 2, 3, 48, 96, max_sequence_length=40, initializer_range=0.5)
    drawn = {
        weight.path: ops.convert_to_numpy(weight)
        for weight in model.weights
        if not weight.path.endswith(("bias", "gamma", "beta"))
    }
    assert len(drawn) == 1 + 5 + 2 * 6 + 1  # embedding; positions; blocks; pooler
    first = {path: tuple(value.reshape(-1)[:8]) for path, value in drawn.items()}
    assert len(set(first.values())) == len(first), "two weights were drawn alike"
    for path, value in drawn.items():
        assert value.std() == pytest.approx(0.5, rel=6 / np.sqrt(2 * value.size)), path
    constant = {weight.path.rsplit("/", 1)[1]: weight for weight in model.weights}
    assert (ops.convert_to_numpy(constant["bias"]) == 0).all()
    assert (ops.convert_to_numpy(constant["beta"]) == 0).all()
    assert (ops.convert_to_numpy(constant["gamma"]) == 1).all()


def test_the_same_seed_makes_the_same_encoder():
    made = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        made.append(outputs(encoder(TUPE_R, scale=None), inputs(random_ids(2, 7)))[0])
    np.testing.assert_array_equal(made[0], made[1])
    assert np.abs(made[0] - made[2]).max() > 1e-3


def test_dropout_acts_in_training_only_and_everywhere():
    model = encoder(TUPE_R, "float32", dropout=0.4)
    rates = [
        layer.rate
        for layer in model._flatten_layers()
        if isinstance(layer, keras_tupe.layers.Dropout)
    ]
    assert rates == [0.4] * (1 + 2 * 3)  # embeddings; per block scores and two sublayers
    given = inputs(random_ids(2, 7))
    still = ops.convert_to_numpy(model(given)["sequence_output"])
    np.testing.assert_array_equal(
        still, ops.convert_to_numpy(model(given, training=False)["sequence_output"])
    )
    one, other = (
        ops.convert_to_numpy(model(given, training=True)["sequence_output"]) for _ in range(2)
    )
    assert min(np.abs(one - still).max(), np.abs(one - other).max()) > 1e-3


def test_token_ids_may_be_of_any_integer_type_and_masks_booleans():
    model = shared_encoder(TUPE_R)
    given = inputs(random_ids(2, 7), lengths=[7, 3])
    wanted = outputs(model, given)
    for ids, mask in (("int64", bool), ("uint8", "uint8"), ("int16", "int64")):
        same = {
            "token_ids": given["token_ids"].astype(ids),
            "padding_mask": given["padding_mask"].astype(mask),
        }
        np.testing.assert_array_equal(outputs(model, same)[0], wanted[0])


def test_predict_equals_a_call_for_one_model_at_several_lengths():
    model = encoder(TUPE_R, "float32")
    for length in (7, 1, 17):
        given = inputs(random_ids(3, length), lengths=[length, 1, max(1, length - 1)])
        predicted = model.predict(given, verbose=0, batch_size=2)
        for name, wanted in zip(
            ("sequence_output", "pooled_output"), outputs(model, given), strict=True
        ):
            np.testing.assert_allclose(predicted[name], wanted, rtol=0, atol=2e-6)


def test_an_empty_batch_gives_an_empty_answer():
    sequence, pooled = outputs(shared_encoder(TUPE_R), inputs(np.zeros((0, 7))))
    assert sequence.shape == (0, 7, 10)
    assert pooled.shape == (0, 10)


# Configuration and files


@pytest.mark.parametrize("case", by_kind(ENCODER_CASES))
def test_config_names_every_argument_and_makes_the_same_encoder(case):
    model = encoder(case, "mixed_bfloat16", num_segments=2, normalize_first=True)
    config = model.get_config()
    json.dumps(keras.saving.serialize_keras_object(model))
    clone = TupeBackbone.from_config(config)
    assert clone.get_config() == config
    assert [w.path for w in clone.weights] == [w.path for w in model.weights]
    assert [tuple(w.shape) for w in clone.weights] == [tuple(w.shape) for w in model.weights]
    assert clone.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.parametrize("case", by_kind(ENCODER_CASES))
def test_a_saved_model_and_saved_weights_give_the_same_answers(case, tmp_path):
    model = encoder(case, num_layers=1)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    model.save(tmp_path / "model.keras")
    assert_same(model, keras.saving.load_model(tmp_path / "model.keras"), given)
    model.save_weights(tmp_path / "model.weights.h5")
    fresh = encoder(case, num_layers=1, scale=None)
    assert np.abs(outputs(fresh, given)[0] - outputs(model, given)[0]).max() > 1e-3
    fresh.load_weights(tmp_path / "model.weights.h5")
    assert_same(model, fresh, given)


@pytest.mark.parametrize("case", by_kind(map(Case, METHOD_NAMES)))
def test_a_preset_loads_through_our_class_and_through_keras_hub(case, tmp_path):
    model = encoder(case, "float32", num_layers=1)
    model.save_to_preset(str(tmp_path))
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    ours = (TupeBackbone,) if case == TUPE_R else ()  # the other one finds it and calls it
    for loader in (keras_hub.models.Backbone, *ours):
        loaded = loader.from_preset(str(tmp_path))
        assert type(loaded) is TupeBackbone
        assert loaded.position == case.name
        assert_same(model, loaded, given)


def test_a_preset_loads_in_another_precision_and_without_weights(tmp_path):
    model = encoder(TUPE_R, "float32")
    model.save_to_preset(str(tmp_path))
    half = TupeBackbone.from_preset(str(tmp_path), dtype="mixed_bfloat16")
    assert half.dtype_policy.name == "mixed_bfloat16"
    for got, wanted in zip(half.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(got), ops.convert_to_numpy(wanted))
    fresh = TupeBackbone.from_preset(str(tmp_path), load_weights=False)
    table = ops.convert_to_numpy(model.token_embedding.embeddings)
    assert np.abs(ops.convert_to_numpy(fresh.token_embedding.embeddings) - table).max() > 1e-3


def test_the_name_in_files_is_that_of_the_package():
    assert keras.saving.get_registered_name(TupeBackbone) == "keras_tupe>TupeBackbone"


def test_numpy_integers_are_good_sizes_and_survive_a_file(tmp_path):
    sizes = dict(zip(("num_layers", "num_heads", "hidden_dim"), np.array([1, 2, 10]), strict=True))
    model = TupeBackbone(np.int64(23), intermediate_dim=13, **sizes)
    model.save(tmp_path / "model.keras")
    assert_same(model, keras.saving.load_model(tmp_path / "model.keras"), inputs(random_ids(2, 7)))


# Training


@pytest.mark.parametrize(
    ("case", "jit_compile"),
    [  # the tasks learn with XLA
        (TUPE_R, False),
        pytest.param(TUPE_R, True, marks=pytest.mark.slow),
        pytest.param(Case("bert_ad"), False, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_compiled_training_step_learns(case, jit_compile):
    model = encoder(case, "float32", num_layers=1, scale=None)
    given = inputs(random_ids(4, 7), lengths=[7, 4, 1, 0])
    target = {"pooled_output": np.tanh(np.random.normal(size=(4, 10))), "sequence_output": None}
    model.compile(
        keras.optimizers.Adam(0.05),
        loss={"pooled_output": "mse", "sequence_output": None},
        jit_compile=jit_compile,
    )
    losses = [float(np.ravel(model.train_on_batch(given, target))[0]) for _ in range(15)]
    assert losses[-1] < 0.5 * losses[0]
