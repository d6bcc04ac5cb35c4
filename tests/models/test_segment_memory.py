"""Segments of a row with a memory of what came before (Transformer-XL)."""

import keras
import numpy as np
import pytest
from core_ways import assert_same, go, outputs_and_gradients
from generation_cases import without_cache
from keras import ops
from position_cases import METHOD_NAMES, WIDTH, Case, encoder, inputs, outputs, random_ids
from tolerances import in_float64

from keras_tupe import TupeBackbone, TupeCausalLM, call_with_memory, positions, with_memory_length
from keras_tupe.analysis import mean_attention_scores, position_logits, seen_keys
from keras_tupe.layers import PlainSelfAttention
from keras_tupe.layers._recomputation import set_remat
from training.check_method import segments

CAUSAL = {"attention_pattern": "causal"}
SEGMENTS = {**CAUSAL, "memory_length": 4, "segment_length": 3}


def tied(name):
    """Returns a method with [CLS] tied, where it has the option."""
    has_option = "cls" in positions.get(name).options
    return Case(name, (("cls", "tied"),) if has_option else ())


CASES = segments.with_memory(map(tied, METHOD_NAMES))
OTHERS = [
    Case("shaw", (("k", 3),)),
    Case("qkr_4", (("share_layers", True),)),
    Case("deberta", (("variant", "released"),)),
    Case("tupe_r_tied_cls", (("variant", "released"),)),
]


def slow(*values):
    return [pytest.param(*value, marks=pytest.mark.slow) for value in values]


def some(*names):
    """Returns all methods with a memory, of which those without these names are `slow`."""
    return [
        pytest.param(case, id=str(case), marks=[] if case.name in names else pytest.mark.slow)
        for case in [*CASES, *OTHERS]
    ]


def _real(found, given):
    return ops.convert_to_numpy(found)[given["padding_mask"].astype(bool)]


def test_which_methods_have_a_memory():
    assert {case.name for case in map(tied, METHOD_NAMES)} - {case.name for case in CASES} == {
        *("absolute", "sinusoidal", "bert_r", "free_table")
    }
    assert positions.get("tupe_a_tied_cls").why_no_memory({"cls": "tied"}) == ""
    for case in map(Case, METHOD_NAMES):
        if case.resolved().get("cls") == "untied":
            assert not segments.with_memory([case])


@pytest.mark.parametrize("case", some("tupe_a_tied_cls", "tupe_r_tied_cls", "xlnet", "rope"))
def test_answers_are_those_of_segments_one_after_the_other(case):
    segments.check_segments(case)


@pytest.mark.parametrize(
    ("memory", "segment"), [(8, 3), (0, 4), *(slow((2, 1), (1, 4), (3, 20), (9, 2)))]
)
def test_any_lengths_of_memory_and_segment(memory, segment):
    sizes = {"memory_length": memory, "segment_length": segment, "max_sequence_length": 30}
    segments.check_segments(Case("tupe_r_tied_cls"), **sizes)


@pytest.mark.parametrize("case", [Case("tupe_r_tied_cls"), Case("shaw")])
def test_rows_may_be_longer_than_tables(case):
    model = encoder(case, **SEGMENTS, max_sequence_length=7, num_layers=1)
    given = inputs(random_ids(2, 20))
    symbols = {name: keras.Input((20,), dtype="int32") for name in given}
    assert model(symbols)["sequence_output"].shape == (None, 20, WIDTH)
    first = {name: values[:, :12] for name, values in given.items()}
    np.testing.assert_allclose(
        outputs(model, given)[0][:, :12], outputs(model, first)[0], atol=in_float64(1e-12)
    )
    assert not model.has_length_limit


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a graph of TensorFlow")
def test_one_graph_is_for_all_lengths():
    import tensorflow as tf

    model = encoder(Case("tupe_r_tied_cls"), **SEGMENTS, num_layers=1)
    spec = tf.TensorSpec((None, None), "int32")
    call = tf.function(model, input_signature=[{"token_ids": spec, "padding_mask": spec}])
    for length in (1, 3, 11):
        given = inputs(random_ids(2, length), lengths=[length, 1])
        found = call({name: tf.constant(values) for name, values in given.items()})
        np.testing.assert_allclose(found["sequence_output"], outputs(model, given)[0], atol=1e-12)


def test_pre_ln_blocks_remember_what_they_are_given():
    segments.check_segments(Case("xlnet"), normalize_first=True)


@pytest.mark.parametrize(
    "case", [param for param in some("t5", "qkr_2") if param.values[0].method.shift_invariant]
)
def test_a_memory_that_loses_nothing_is_one_long_causal_run(case):
    given = inputs(random_ids(3, 11), lengths=[11, 7, 2])
    whole = encoder(case, **CAUSAL)
    model = encoder(case, **CAUSAL, memory_length=9, segment_length=3)
    got, wanted = (_real(outputs(one, given)[0], given) for one in (model, whole))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12))
    model = encoder(case, **SEGMENTS)
    assert np.abs(_real(outputs(model, given)[0], given) - wanted).max() > 1e-6, "states are lost"


@pytest.mark.parametrize(
    ("case", "normalize_first"),
    [(Case("tupe_r_tied_cls"), False), (Case("rope"), True), *slow((Case("shaw"), False))],
)
def test_parts_of_a_text_are_one_long_row(case, normalize_first):
    model = encoder(case, **SEGMENTS, normalize_first=normalize_first)
    whole = inputs(random_ids(2, 16))
    wanted, memory, found = outputs(model, whole)[0], None, []
    for start, end in ((0, 3), (3, 12), (12, 16)):
        part = {name: values[:, start:end] for name, values in whole.items()}
        x, memory = call_with_memory(model, part, memory)
        found.append(ops.convert_to_numpy(x))
    np.testing.assert_allclose(
        np.concatenate(found, axis=1), wanted, rtol=0, atol=in_float64(1e-12)
    )
    assert tuple(memory["hidden_states"].shape) == (2, 2, 4, WIDTH)
    assert ops.convert_to_numpy(memory["mask"]).tolist() == [[1] * 4] * 2


def test_a_row_of_the_batch_may_begin_another_text():
    model, ids = encoder(Case("rope"), **SEGMENTS), random_ids(2, 9)
    x, memory = call_with_memory(model, inputs(ids[:, :6]))
    memory["mask"] = ops.convert_to_numpy(memory["mask"]) * np.array([[1], [0]])
    x, _ = call_with_memory(model, inputs(ids[:, 6:]), memory)
    x = ops.convert_to_numpy(x)
    goes_on, alone = outputs(model, inputs(ids))[0], outputs(model, inputs(ids[:, 6:]))[0]
    np.testing.assert_allclose(x[0], goes_on[0, 6:], atol=in_float64(1e-12))
    np.testing.assert_allclose(x[1], alone[1], atol=in_float64(1e-12))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="takes gradients of calls")
@pytest.mark.parametrize("normalize_first", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_no_gradient_goes_to_remembered_states(normalize_first):
    """Those of segments in parallel are the sum of those of calls, between which are arrays."""
    import tensorflow as tf

    model = encoder(Case("xlnet"), **SEGMENTS, normalize_first=normalize_first)
    whole = inputs(random_ids(2, 9))
    factors = np.random.default_rng(1).normal(size=(2, 9, WIDTH))
    found = outputs_and_gradients(model, whole)
    names, memory = [weight.path for weight in model.trainable_weights], None
    weights = [weight.value for weight in model.trainable_weights]
    total = dict.fromkeys(names, 0)
    for start in range(0, 9, 3):
        part = {name: values[:, start : start + 3] for name, values in whole.items()}
        with tf.GradientTape() as tape:
            x, memory = call_with_memory(model, part, memory)
            loss = tf.reduce_sum(x * factors[:, start : start + 3])
        memory = {name: value.numpy() for name, value in memory.items()}
        gradients = tape.gradient(loss, weights, unconnected_gradients="zero")
        for name, gradient in zip(names, gradients, strict=True):
            total[name] = total[name] + tf.convert_to_tensor(gradient).numpy()
    # the factors of `outputs_and_gradients` are the same
    assert_same({name: found[name] for name in names}, total)
    last = {name: values[:, 6:] for name, values in whole.items()}
    alone = outputs_and_gradients(model, last)
    assert np.abs(alone["sequence_output"] - found["sequence_output"][:, 6:]).max() > 1e-3


@pytest.mark.parametrize(
    "case",
    [Case("tupe_r_tied_cls"), *slow(*((Case(name),) for name in ("deberta", "qkr_2", "rope")))],
    ids=str,
)
def test_blocks_of_rows_are_all_rows_at_once(case, monkeypatch):
    sizes = {"memory_length": 4, "segment_length": 5, "max_sequence_length": 17}
    model = encoder(case, **CAUSAL, **sizes, num_layers=1)
    given = inputs(random_ids(2, 9), lengths=[9, 6])
    wanted = outputs_and_gradients(model, given)
    go("blocks", monkeypatch, rows=2)
    model = encoder(case, **CAUSAL, **sizes, num_layers=1)  # a bias is handed by its parts now
    assert_same(outputs_and_gradients(model, given), wanted)


def test_blocks_that_are_computed_again_have_the_same_gradients():
    model = encoder(Case("rope"), **SEGMENTS, dropout=0.0)
    given = inputs(random_ids(2, 9), lengths=[9, 6])
    wanted = outputs_and_gradients(model, given, training=True)
    set_remat(model, True)
    assert_same(outputs_and_gradients(model, given, training=True), wanted)


def test_dropout_of_scores_is_part_of_training():
    keras.utils.set_random_seed(0)
    layer = PlainSelfAttention(2, 4, dropout=0.5, attention_pattern="causal", memory_length=3)
    x = np.random.default_rng(0).normal(size=(2, 7, 8)).astype("float32")
    one, other, off = (ops.convert_to_numpy(layer(x, training=t)) for t in (True, True, False))
    assert np.abs(one - other).max() > 1e-3 < np.abs(one - off).max()


def test_another_pattern_that_sees_back_alone():
    window = {"attention_pattern": "sliding_window", "pattern_options": {"window": 2}}
    window["pattern_options"] |= {"causal": True}
    given = inputs(random_ids(2, 11), lengths=[11, 7])
    model = encoder(Case("rope"), **window, memory_length=4, segment_length=3)
    whole = encoder(Case("rope"), **window)  # one block sees 2 tokens back, which are remembered
    got, wanted = (_real(outputs(one, given)[0], given) for one in (model, whole))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12))


def test_another_memory_for_the_same_weights():
    model = TupeCausalLM(encoder(Case("rope"), **SEGMENTS))
    longer = with_memory_length(model, 9)
    assert isinstance(longer, TupeCausalLM)
    assert (longer.backbone.memory_length, longer.backbone.segment_length) == (9, 3)
    given = inputs(random_ids(2, 11))
    whole = encoder(Case("rope"), **CAUSAL)
    np.testing.assert_allclose(
        outputs(longer.backbone, given)[0], outputs(whole, given)[0], atol=in_float64(1e-12)
    )
    cut = with_memory_length(whole, 0, segment_length=3)
    alone = inputs(given["token_ids"][:, 3:6])
    np.testing.assert_allclose(
        outputs(cut, given)[0][:, 3:6], outputs(whole, alone)[0], atol=in_float64(1e-12)
    )


def test_presets_keep_the_memory(tmp_path):
    model = encoder(tied("tupe_r"), "float32", **SEGMENTS)
    model.save_to_preset(str(tmp_path))
    again = TupeBackbone.from_preset(str(tmp_path))
    assert (again.memory_length, again.segment_length) == (4, 3)
    given = inputs(random_ids(2, 11))
    np.testing.assert_array_equal(outputs(again, given)[0], outputs(model, given)[0])


@pytest.mark.slow
def test_a_text_is_written_on_with_a_memory():
    model = TupeCausalLM(encoder(Case("xlnet"), **SEGMENTS, num_layers=1))
    model.compile(sampler="greedy")
    ids, lengths = random_ids(2, 11), [2, 5]
    given = inputs(ids, lengths=lengths)
    found = model.generate(given, stop_token_ids=None)["token_ids"]
    rows, _ = without_cache(model, ids, lengths)
    np.testing.assert_array_equal(found, rows)


def test_models_with_segments_are_not_exported_nor_drawn(tmp_path):
    model = encoder(Case("rope"), "float32", **SEGMENTS)
    ids = random_ids(1, 6)
    for look in (
        lambda: mean_attention_scores(model, ids, np.ones_like(ids)),
        lambda: position_logits(model, 6),
        lambda: seen_keys(model, 6),
    ):
        with pytest.raises(ValueError, match="all pairs of tokens of a row.*memory_length=4"):
            look()
    if keras.backend.backend() == "tensorflow":
        from keras_tupe.export import export_encoder

        with pytest.raises(ValueError, match="has no exported form yet.*memory_length=4"):
            export_encoder(model, tmp_path / "saved")
        assert not (tmp_path / "saved").exists()


@pytest.mark.slow
def test_a_model_learns_from_what_it_remembers():
    """Rows repeat a random segment, which only a memory can tell."""
    rng = np.random.default_rng(0)
    ids = np.tile(rng.integers(0, 16, size=(512, 6)), (1, 4))
    losses = {}
    for memory in (6, 0):
        keras.utils.set_random_seed(0)
        backbone = TupeBackbone(
            *(16, 1, 2, 32, 64, "shaw"),
            **CAUSAL,
            position_options={"k": 8},
            dropout=0.0,
            memory_length=memory,
            segment_length=6,
        )
        backbone.get_layer("pooled_dense").trainable = False
        model = TupeCausalLM(backbone)
        model.compile(keras.optimizers.Adam(0.01))
        given = inputs(ids)
        x = {name: values[:, :-1] for name, values in given.items()}
        model.fit(x, ids[:, 1:], batch_size=64, epochs=25, verbose=0)
        test = np.tile(rng.integers(0, 16, size=(64, 6)), (1, 4))
        shares = ops.log_softmax(model({n: v[:, :-1] for n, v in inputs(test).items()}), axis=-1)
        shares = ops.convert_to_numpy(shares)
        own = np.take_along_axis(shares, test[:, 1:, None], axis=-1)
        losses[memory] = -own[:, 6:].mean()
    assert losses[6] < 0.5
    assert losses[0] > 2.5
