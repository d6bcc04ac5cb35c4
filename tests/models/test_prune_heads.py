"""Encoders without some of their heads, beside those whose heads have gates at zero."""

import json

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import (
    CASES,
    ENCODER_CASES,
    VOCABULARY,
    Case,
    inputs,
    outputs,
    random_ids,
    scramble,
)
from tolerances import in_float64

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeTextClassifier, positions
from keras_tupe.analysis import mean_attention_scores, position_logits
from keras_tupe.convert import to_hf
from keras_tupe.layers.attention.heads import head_gates
from keras_tupe.models import TupeReplacedTokenDetector, lowest_heads, prune_heads
from training.check_method.numpy_encoder import encode

HEADS, KEY_DIM = 5, 3
# no layer keeps heads 1 and 4; the heads of layer 0 are not next to each other
KEPT = [[0, 3], [2], [0, 2, 3]]
REMOVED = {layer: sorted({*range(HEADS)} - {*kept}) for layer, kept in enumerate(KEPT)}


def encoder(case, **kwargs):
    """Returns a float64 backbone of three layers with scrambled weights."""
    settings = {"num_layers": 3, "dropout": 0.0, "max_sequence_length": 17, **kwargs}
    model = TupeBackbone(
        VOCABULARY,
        num_heads=HEADS,
        hidden_dim=HEADS * KEY_DIM,
        intermediate_dim=7,
        position=case.name,
        position_options=dict(case.options),
        dtype="float64",
        **settings,
    )
    scramble(model.weights)
    return model


def gates_of(backbone, removed=REMOVED):
    """Returns gates of all attention layers, zero for the removed heads."""
    found = {}
    for layer, block in enumerate(backbone.blocks):
        gates = np.ones((1, backbone.num_heads))
        gates[:, removed.get(layer, [])] = 0
        found[block.attention] = ops.convert_to_tensor(gates)
    return found


def without_output(backbone, removed=REMOVED):
    """Sets what the removed heads give to the output of their layers to zero, in the weights."""
    for layer, block in enumerate(backbone.blocks):
        kernel = block.attention.output_dense.kernel
        value = ops.convert_to_numpy(kernel).copy()
        value[removed.get(layer, [])] = 0
        kernel.assign(value)


# One of each way in which a method has something for each head; all other methods are slow, as they
# are, with [CLS] the other way, in their released variant and with tables that layers share.
_FEW = [
    Case("alibi"),
    Case("bert_ad"),
    Case("deberta"),
    Case("shaw", (("share_layers", True),)),
    Case("t5_low_rank"),
    Case("tupe_r", (("variant", "released"),)),
]


def _cases(few, cases):
    rest = [pytest.param(case, marks=pytest.mark.slow) for case in cases if case not in few]
    return [*few, *rest]


def _other_cls(case):
    return [name for name, _ in case.options] == ["cls"]


_WIDE = list(dict.fromkeys([*ENCODER_CASES, *filter(_other_cls, CASES)]))


@pytest.mark.parametrize("case", _cases(_FEW, _WIDE), ids=str)
def test_a_pruned_encoder_answers_as_one_with_gates_at_zero_and_as_the_equations(case):
    model = encoder(case)
    pruned = prune_heads(model, REMOVED)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    real = given["padding_mask"].astype(bool)
    got = outputs(pruned, given)
    with head_gates(gates_of(model)):
        gated = outputs(model, given)
    for ours, theirs in zip(got, gated, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=in_float64(1e-12))
    without_output(model)
    wanted = encode(model, given)  # in NumPy
    np.testing.assert_allclose(got[0][real], wanted[0][real], rtol=0, atol=in_float64(1e-11))
    assert np.abs(outputs(encoder(case), given)[0] - got[0]).max() > 1e-3  # it is another model
    assert pruned.kept_heads == KEPT
    assert pruned.count_params() < model.count_params()


def test_weights_of_heads_that_no_layer_has_are_gone():
    model = encoder(Case("tupe_r"))
    pruned = prune_heads(model, REMOVED)
    shapes = {weight.path: tuple(weight.shape) for weight in pruned.weights}
    assert shapes["block_1/attention/query/kernel"] == (15, 1, KEY_DIM)
    assert shapes["block_0/attention/output/kernel"] == (2, KEY_DIM, 15)
    assert shapes["position_bias/relative/embeddings"] == (32, 3)
    assert shapes["position_bias/untied/projection/query/kernel"] == (15, 3, KEY_DIM)
    assert shapes["position_bias/untied/projection/embeddings"] == (17, 15)
    again = prune_heads(pruned, {2: [2], 0: [3]})
    at_once = prune_heads(model, {0: [1, 2, 3, 4], 1: [0, 1, 3, 4], 2: [1, 2, 4]})
    assert again.kept_heads == at_once.kept_heads == [[0], [2], [0, 3]]
    for ours, theirs in zip(again.weights, at_once.weights, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs))


def test_layers_of_a_group_lose_the_same_heads():
    model = encoder(Case("tupe_r"), num_layers=4, num_groups=2)
    removed = {0: [0, 2], 1: [0, 2], 2: [1], 3: [1]}
    pruned = prune_heads(model, removed)
    given = inputs(random_ids(2, 6))
    with head_gates(gates_of(model, removed)):
        gated = outputs(model, given)
    np.testing.assert_allclose(outputs(pruned, given)[0], gated[0], rtol=0, atol=in_float64(1e-12))
    with pytest.raises(ValueError, match="share a block must keep the same heads"):
        prune_heads(model, {0: [0], 1: [1]})


@pytest.mark.parametrize("name", ["tupe_r", "bert_ad"])
def test_long_sequences_have_the_parts_of_their_heads(name):
    model = encoder(Case(name), num_layers=3, max_sequence_length=530)
    given = inputs(random_ids(1, 523))
    with head_gates(gates_of(model)):
        gated = outputs(model, given)
    got = outputs(prune_heads(model, REMOVED), given)
    np.testing.assert_allclose(got[0], gated[0], rtol=0, atol=in_float64(1e-11))


# By a bias, and by a table that all layers share; all others that generate are slow.
_STEPS = [Case("tupe_r"), Case("shaw", (("share_layers", True),))]
_CAUSAL = [case for case in ENCODER_CASES if "causal" not in case.method.refused_patterns]


@pytest.mark.parametrize("case", _cases(_STEPS, _CAUSAL), ids=str)
def test_a_pruned_trunk_generates_as_it_answers(case):
    backbone = prune_heads(encoder(case, attention_pattern="causal"), REMOVED)
    ids = random_ids(2, 6)
    steps = backbone_steps(backbone, ids)
    whole = outputs(backbone, inputs(ids))[0]
    np.testing.assert_allclose(steps, whole, rtol=0, atol=in_float64(1e-12))


def backbone_steps(backbone, ids):
    """Returns hidden states of a prompt of two tokens and of one token after the other."""
    from keras_tupe.trunk.steps import Steps

    cached = Steps(backbone.trunk, ids.shape[1])
    x, caches = cached.prefill(ops.convert_to_tensor(ids[:, :2]))
    found = [x]
    for index in range(2, ids.shape[1]):
        x, caches = cached.step(ops.convert_to_tensor(ids[:, index : index + 1]), caches, index)
        found.append(x)
    return ops.convert_to_numpy(ops.concatenate(found, axis=1))


def test_a_pruned_model_is_saved_and_trained_like_any_other(tmp_path):
    model = TupeMaskedLM(encoder(Case("tupe_r")))
    pruned = prune_heads(model, REMOVED)
    pruned.save_to_preset(str(tmp_path / "preset"))
    config = json.loads((tmp_path / "preset/config.json").read_text())
    assert config["config"]["kept_heads"] == KEPT
    again = TupeMaskedLM.from_preset(str(tmp_path / "preset"), dtype="float64")
    pruned.save(tmp_path / "model.keras")
    other = keras.saving.load_model(tmp_path / "model.keras")
    given = {**inputs(random_ids(3, 7)), "mask_positions": np.array([[1], [3], [2]])}
    answer = ops.convert_to_numpy(pruned(given))
    for loaded in (again, other):
        np.testing.assert_allclose(ops.convert_to_numpy(loaded(given)), answer, atol=1e-12)


def test_a_pruned_model_is_trained_like_any_other():
    model = prune_heads(TupeTextClassifier(encoder(Case("tupe_r")), 2), REMOVED)
    before = [ops.convert_to_numpy(weight) for weight in model.weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss=loss, run_eagerly=keras.backend.backend() == "tensorflow")
    model.fit(inputs(random_ids(3, 7)), np.array([0, 1, 1]), verbose=0)
    moved = [
        np.abs(ops.convert_to_numpy(w) - b).max() > 0
        for w, b in zip(model.weights, before, strict=True)
    ]
    relative = [w.path for w in model.weights].index("position_bias/relative/embeddings")
    assert moved[relative]
    assert sum(moved) > 0.9 * len(moved)


def test_tasks_keep_their_heads_and_a_config_without_the_entry_has_all():
    model = TupeTextClassifier(encoder(Case("absolute")), 3)
    pruned = prune_heads(model, {1: [0]})
    assert type(pruned) is TupeTextClassifier
    assert pruned.num_classes == 3
    config = model.backbone.get_config()
    assert config.pop("kept_heads") is None  # as presets of before
    assert TupeBackbone.from_config(config).kept_heads is None
    assert prune_heads(model, {}).backbone.kept_heads is None


def test_lowest_heads_are_those_of_all_layers_but_one_of_each():
    importance = np.array([[0.1, 0.2, 0.3], [9.0, 8.0, 7.0], [0.5, np.nan, 0.4]])
    assert lowest_heads(importance, 0) == {}
    assert lowest_heads(importance, 0.25) == {0: [0, 1]}
    assert lowest_heads(importance, 0.5) == {0: [0, 1], 1: [2], 2: [2]}
    assert lowest_heads(importance, 0.99) == {0: [0, 1], 1: [1, 2], 2: [2]}


@pytest.mark.parametrize("share", [1, 1.5, -0.1, True, "half", float("nan")])
def test_a_share_outside_of_its_range_is_refused(share):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        lowest_heads(np.ones((2, 2)), share)


@pytest.mark.parametrize(
    ("heads", "error", "text"),
    [
        ({0: [0, 1, 2, 3, 4]}, ValueError, "at least one head"),
        ({3: [0]}, ValueError, "from 0 to 2"),
        ({0: [5]}, ValueError, "a list of heads that it has"),
        ({0: 1}, ValueError, "a list of heads"),
        ([0], TypeError, "must be a dictionary"),
    ],
)
def test_impossible_heads_are_refused(heads, error, text):
    with pytest.raises(error, match=text):
        prune_heads(encoder(Case("none")), heads)


@pytest.mark.parametrize("kept", [[[0]], [[0], [], [1]], [[1, 0], [0], [0]], [[0], [7], [0]], 3])
def test_impossible_kept_heads_are_refused(kept):
    with pytest.raises(ValueError, match="a list of 3 lists"):
        encoder(Case("none"), kept_heads=kept)


def test_models_of_several_encoders_and_other_objects_are_refused():
    small = TupeBackbone(9, 1, 2, 4, 4)
    detector = TupeReplacedTokenDetector(small, TupeBackbone(9, 1, 2, 4, 4))
    for model in (detector, keras.Sequential()):
        with pytest.raises(TypeError, match="take one"):
            prune_heads(model, {})


def test_a_method_without_a_rule_for_its_heads_is_refused(monkeypatch):
    import dataclasses

    own = dataclasses.replace(positions.get("alibi"), prunes_heads=False)
    monkeypatch.setitem(positions.METHODS, "their_own", own)
    model = encoder(Case("their_own"))
    with pytest.raises(ValueError, match="set `prunes_heads=True` in its record"):
        prune_heads(model, {0: [1]})


def test_analysis_knows_which_heads_are_there():
    model = encoder(Case("tupe_r"))
    pruned = prune_heads(model, REMOVED)
    given = inputs(random_ids(2, 6))
    scores = mean_attention_scores(pruned, **given)
    assert [list(np.flatnonzero(~np.isnan(layer[:, 0, 0]))) for layer in scores] == KEPT
    whole = mean_attention_scores(model, **given)
    np.testing.assert_allclose(scores[0, KEPT[0]], whole[0, KEPT[0]], atol=in_float64(1e-12))
    logits = position_logits(pruned, 6)
    np.testing.assert_allclose(logits, position_logits(model, 6)[KEPT[0]], atol=in_float64(1e-12))


def test_a_format_without_pruned_heads_is_refused(tmp_path):
    pruned = prune_heads(encoder(Case("absolute"), num_layers=1), {0: [1]})
    with pytest.raises(ValueError, match=r"kept_heads=\[\[0, 2, 3, 4\]\] must be None"):
        to_hf(pruned, tmp_path / "model")


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModels are TensorFlow's")
@pytest.mark.parametrize("name", ["tupe_r", "shaw", "bert_ad", "alibi"])
def test_a_pruned_encoder_is_exported(name, tmp_path):
    import tensorflow as tf

    from keras_tupe.export import export_encoder
    from keras_tupe.models import SavedEncoder

    pruned = prune_heads(encoder(Case(name), max_sequence_length=9), REMOVED)
    export_encoder(pruned, tmp_path / "model")
    given = inputs(random_ids(2, 9))
    wanted = outputs(pruned, given)[0]
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    whole = {**given, "segment_ids": np.zeros_like(given["token_ids"])}
    found = loaded.signatures["encode"](**{name: tf.constant(x) for name, x in whole.items()})
    np.testing.assert_allclose(found["sequence_output"].numpy(), wanted, atol=2e-6)
    hub = {"input_word_ids": given["token_ids"], "input_mask": given["padding_mask"]}
    again = SavedEncoder(str(tmp_path / "model"))(hub)["sequence_output"]
    np.testing.assert_allclose(ops.convert_to_numpy(again), wanted, atol=2e-6)
