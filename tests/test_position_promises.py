"""What every positional method promises beside its equation."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops
from position_cases import (
    CASES,
    ENCODER_CASES,
    MAX_LENGTH,
    METHOD_NAMES,
    VOCABULARY,
    Case,
    encoder,
    inputs,
    method_layers,
    outputs,
    random_ids,
    shared_encoder,
)
from tolerances import in_float64

from keras_tupe import positions


def assert_close(got, wanted, atol):
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


# Padding


@pytest.mark.parametrize("case", ENCODER_CASES, ids=str)
@hypothesis.given(length=st.integers(1, MAX_LENGTH - 1), data=st.data(), seed=st.integers(0, 1000))
@hypothesis.settings(max_examples=5)
def test_more_padding_never_changes_real_tokens(case, length, data, seed):
    padding = data.draw(st.integers(1, MAX_LENGTH - length), label="padding")
    model = shared_encoder(case)
    token_ids = random_ids(2, length + padding, seed)  # padded places hold garbage
    sequence, pooled = outputs(model, inputs(token_ids[:, :length]))
    padded_sequence, padded_pooled = outputs(model, inputs(token_ids, lengths=[length] * 2))
    assert_close(
        (padded_sequence[:, :length], padded_pooled), (sequence, pooled), in_float64(1e-11)
    )


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_more_padding_changes_nothing_in_float32_either(name):
    model = encoder(Case(name), "float32", scale=None)  # as initialized
    token_ids = random_ids(3, 11)
    sequence, pooled = outputs(model, inputs(token_ids[:, :7]))
    padded_sequence, padded_pooled = outputs(model, inputs(token_ids, lengths=[7] * 3))
    assert_close((padded_sequence[:, :7], padded_pooled), (sequence, pooled), 1e-6)


@pytest.mark.parametrize("case", ENCODER_CASES, ids=str)
def test_padding_content_is_invisible(case):
    model, lengths = shared_encoder(case), [7, 4, 1]
    token_ids, other = random_ids(3, 7), random_ids(3, 7, seed=1)
    given = inputs(token_ids, lengths)
    real = given["padding_mask"].astype(bool)
    changed = inputs(np.where(real, token_ids, other), lengths)
    assert (changed["token_ids"] != given["token_ids"]).any()
    before, after = outputs(model, given), outputs(model, changed)
    np.testing.assert_array_equal(after[0][real], before[0][real])
    np.testing.assert_array_equal(after[1], before[1])
    unmasked = outputs(model, inputs(changed["token_ids"]))
    assert np.abs(unmasked[0][real] - before[0][real]).max() > 1e-3, "the mask matters"


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_a_row_of_padding_alone_is_finite_and_leaves_others_alone(name):
    model = shared_encoder(Case(name))
    token_ids = random_ids(3, 7)
    sequence, pooled = outputs(model, inputs(token_ids, lengths=[5, 0, 7]))
    assert np.isfinite(sequence).all()
    assert np.isfinite(pooled).all()
    alone = outputs(model, inputs(token_ids[:1], lengths=[5]))
    assert_close((sequence[:1, :5], pooled[:1]), (alone[0][:, :5], alone[1]), in_float64(1e-11))


# Order


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_order_is_seen_by_every_method_but_none(name):
    model = shared_encoder(Case(name))
    token_ids = np.random.default_rng(0).permutation(VOCABULARY)[:7][None]
    order = np.array([0, 3, 1, 6, 2, 5, 4])  # [CLS] stays
    straight, pooled = outputs(model, inputs(token_ids))
    shuffled, shuffled_pooled = outputs(model, inputs(token_ids[:, order]))
    difference = np.abs(shuffled - straight[:, order]).max()
    pooled_difference = np.abs(shuffled_pooled - pooled).max()
    if name != "none":
        assert min(difference, pooled_difference) > 1e-3
    else:
        assert max(difference, pooled_difference) < in_float64(1e-12)


RELATIVE = [
    "none",
    "t5",
    "alibi",
    "shaw",
    "xlnet",
    "xlnet_no_bias",
    "qkr_1",
    "qkr_2",
    "qkr_3",
    "qkr_4",
    "rope",
    "deberta",
    "diet_rel",
]
ABSOLUTE = [
    "absolute",
    "sinusoidal",
    "bert_r",
    "tupe_a",
    "tupe_r",
    "tupe_a_tied_cls",
    "tupe_r_tied_cls",
    "bert_ad",
    "free_table",
    "t5_low_rank",
    "diet_abs",
]


@pytest.mark.parametrize("name", RELATIVE + ABSOLUTE)
def test_a_shift_of_all_positions_is_seen_by_absolute_methods_only(name):
    model = shared_encoder(Case(name))
    token_ids = random_ids(2, 7)
    sequence, _ = outputs(model, inputs(token_ids))
    shifted = inputs(np.concatenate([random_ids(2, 3, seed=1), token_ids], axis=1))
    shifted["padding_mask"][:, :3] = 0  # three padded places in front
    difference = np.abs(outputs(model, shifted)[0][:, 3:] - sequence).max()
    assert difference < in_float64(1e-12) if name in RELATIVE else difference > 1e-3


def bias_matrix(case, length):
    """Returns the position bias of a method `(heads, length, length)`."""
    method = method_layers(case, "float64")
    return ops.convert_to_numpy(method.bias(np.zeros((1, length, 10))))[0]


def is_toeplitz(matrix):
    return bool(np.allclose(matrix[:, 1:, 1:], matrix[:, :-1, :-1], rtol=0, atol=in_float64(1e-13)))


@pytest.mark.parametrize("name", ["t5", "bert_r"])
def test_relative_biases_depend_on_the_distance_alone(name):
    whole = bias_matrix(Case(name), MAX_LENGTH)
    assert is_toeplitz(whole)
    assert not is_toeplitz(bias_matrix(Case("tupe_r_tied_cls"), MAX_LENGTH))
    for length in (1, 2, 3, 7):
        np.testing.assert_array_equal(bias_matrix(Case(name), length), whole[:, :length, :length])


def cls_is(case):
    """Returns what the case says about [CLS], `None` where it cannot."""
    return case.resolved().get("cls")


def has_bias(case):
    return case.method.bias is not None


CLS_CASES = [case for case in CASES if cls_is(case)]


@pytest.mark.parametrize("case", [case for case in CLS_CASES if has_bias(case)], ids=str)
def test_untied_cls_has_one_value_in_its_row_and_one_in_its_column_at_every_length(case):
    rows, columns = [], []
    for length in (2, 3, 7, MAX_LENGTH):
        bias = bias_matrix(case, length)
        rows.extend(bias[:, 0].T)
        columns.extend(bias[:, 1:, 0].T)
    spread = max(np.ptp(rows, axis=0).max(), np.ptp(columns, axis=0).max())
    if cls_is(case) == "untied":
        assert spread < in_float64(1e-13)
        np.testing.assert_allclose(bias_matrix(case, 1)[:, 0, 0], rows[0], atol=in_float64(1e-13))
        assert np.abs(rows[0] - columns[0]).min() > 1e-3, "theta_1 is not theta_2"
    else:
        assert spread > 1e-3
    rest = bias_matrix(case, MAX_LENGTH)[:, 1:, 1:]
    assert np.ptp(rest, axis=(1, 2)).min() > 1e-3


@pytest.mark.parametrize("case", [case for case in CLS_CASES if not case.method.embed], ids=str)
def test_places_are_invisible_to_and_from_an_untied_cls_and_to_no_tied_one(case):
    method = method_layers(case, "float64")
    tokens = np.random.default_rng(0).normal(size=(1, 7, 10))
    order = np.array([0, 3, 1, 6, 2, 5, 4])
    straight, shuffled = (method.run(x)[0][0] for x in (tokens, tokens[:, order]))
    row = np.abs(shuffled[:, 0] - straight[:, 0, order]).max()
    column = np.abs(shuffled[:, :, 0] - straight[:, order, 0]).max()
    words = np.abs(shuffled - straight[:, order][:, :, order])[:, 1:, 1:].max()
    assert words > 1e-3, "words see places"
    if cls_is(case) == "untied":
        assert max(row, column) < in_float64(1e-12)
    else:
        assert min(row, column) > 1e-3


@pytest.mark.parametrize("name", ["none", "absolute", "sinusoidal", "bert_ad"])
def test_methods_without_a_position_term_of_its_own_cannot_untie_cls(name):
    with pytest.raises(ValueError, match="no option 'cls'(.|\n)*it has none"):
        encoder(Case(name, (("cls", "untied"),)))


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_all_other_methods_can_untie_cls(name):
    assert ("cls" in positions.get(name).options) == (
        name not in ("none", "absolute", "sinusoidal", "bert_ad")
    )


@pytest.mark.parametrize("options", [(), (("cls", "untied"), ("k", 3))])
@pytest.mark.parametrize("name", ["qkr_1", "qkr_2", "qkr_3"])
def test_multiplicative_methods_start_as_an_encoder_without_positions(name, options):
    model, plain = encoder(Case(name, options), scale=None), encoder(Case("none"))
    values = {weight.path: weight for weight in model.weights}
    for weight in plain.weights:
        values[weight.path].assign(weight)
    given = inputs(random_ids(3, 11), lengths=[11, 7, 1])
    assert_close(outputs(model, given), outputs(plain, given), in_float64(1e-13))


def test_a_method_outside_the_package_keeps_the_promises(linear_slope):
    case = Case(linear_slope)
    test_padding_content_is_invisible(case)
    test_a_row_of_padding_alone_is_finite_and_leaves_others_alone(linear_slope)
    test_order_is_seen_by_every_method_but_none(linear_slope)
    test_a_table_bounds_the_length_and_nothing_else_does(case)


# Work


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_position_work_is_done_once_per_forward_pass(name, monkeypatch):
    model = encoder(Case(name), num_layers=3)
    method, calls = positions.get(name), []

    def spied(layer):
        call = layer.call

        def record(hidden_states):
            calls.append((layer.name, call(hidden_states)))
            return calls[-1][1]

        return record

    has = {"position_embedding": method.embed, "position_bias": method.bias}
    names = {layer.name for layer in model.layers}
    wanted = {place for place, factory in has.items() if factory} | names & {"shared_positions"}
    for place in wanted:
        monkeypatch.setattr(model.get_layer(place), "call", spied(model.get_layer(place)))
    model(inputs(random_ids(3, 7)))
    assert sorted(place for place, _ in calls) == sorted(wanted)
    for place, result in calls:
        if place == "position_bias":
            assert tuple(result.shape) == (1, 2, 7, 7)
        elif place == "shared_positions":  # nothing per sequence or per pair
            shapes = [tuple(x.shape) for x in keras.tree.flatten(result)]
            assert all(3 not in shape and shape[:2] != (7, 7) for shape in shapes), shapes
    assert len([layer for layer in model.layers if layer.name.startswith("block_")]) == 3


# Length


CLIPPED_CASES = [case for case in CASES if case.options == (("k", 3),)]


@pytest.mark.parametrize("case", [*map(Case, METHOD_NAMES), *CLIPPED_CASES], ids=str)
def test_a_table_bounds_the_length_and_nothing_else_does(case):
    model = shared_encoder(case)
    one_more = inputs(random_ids(2, MAX_LENGTH + 1))
    symbols = {key: keras.Input((MAX_LENGTH + 1,), dtype="int32") for key in one_more}
    assert not (model.has_length_limit and case.options), "a clipped table has no limit"
    if model.has_length_limit:
        message = (
            rf"at most max_sequence_length={MAX_LENGTH} tokens(.|\n)*Truncate(.|\n)*"
            rf"Received: sequence length={MAX_LENGTH + 1}"
        )
        with pytest.raises(ValueError, match=message):
            model(one_more)
        with pytest.raises(ValueError, match=message):
            model(symbols)
    else:
        longer = outputs(model, inputs(random_ids(2, 3 * MAX_LENGTH)))
        assert longer[0].shape == (2, 3 * MAX_LENGTH, 10)
        assert np.isfinite(longer[0]).all()
        assert model(symbols)["sequence_output"].shape == (None, MAX_LENGTH + 1, 10)
    assert outputs(model, inputs(random_ids(2, MAX_LENGTH)))[0].shape == (2, MAX_LENGTH, 10)


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize("case", ENCODER_CASES, ids=str)
def test_one_graph_serves_every_length(case, tensorflow):
    model = encoder(case, num_layers=1)
    spec = tensorflow.TensorSpec((None, None), "int32")

    @tensorflow.function(input_signature=[spec, spec])
    def serve(token_ids, padding_mask):
        return model({"token_ids": token_ids, "padding_mask": padding_mask})

    for length in (1, 2, 7, MAX_LENGTH):
        given = inputs(random_ids(3, length), lengths=[length, 1, max(1, length - 1)])
        answer = serve(**{key: tensorflow.constant(value) for key, value in given.items()})
        got = (answer["sequence_output"].numpy(), answer["pooled_output"].numpy())
        assert_close(got, outputs(model, given), 1e-12)
    assert serve.experimental_get_tracing_count() == 1
