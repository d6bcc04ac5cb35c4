"""Position terms as constants in what is served, and nowhere else."""

import collections

import keras
import numpy as np
import pytest
import saved_cases
import tensorflow as tf

from keras_tupe import TupeBackbone, TupeTextClassifier, positions
from keras_tupe.export import export_encoder, export_text_model
from keras_tupe.export._folding import FoldedEncoder
from keras_tupe.export._names import input_specs
from keras_tupe.export.encoder import _signatures
from keras_tupe.layers import PlainSelfAttention, UntiedPositionalAttention
from keras_tupe.tokenizers import WordPiece

LENGTH = 9
NAMES = ("token_ids", "padding_mask")
DIMS = positions.Dims(2, 3, 12)


def is_content_free(method):
    attention = method.attention(DIMS, method.options)
    plain = (PlainSelfAttention, UntiedPositionalAttention)
    return isinstance(attention, plain) or hasattr(attention, "position_logits")


CONTENT_FREE = [name for name, method in positions.METHODS.items() if is_content_free(method)]


def scrambled(position, seed=5, **kwargs):
    keras.utils.set_random_seed(3)
    sizes = {"max_sequence_length": 12, **kwargs}
    backbone = TupeBackbone(20, 1, 2, 6, 11, position=position, **sizes)
    generator = np.random.default_rng(seed)
    for weight in backbone.trainable_weights:
        weight.assign(generator.normal(size=weight.shape) * 0.5)
    return backbone


def rows(length=LENGTH):
    token_ids = np.random.default_rng(7).integers(0, 20, (4, length)).astype("int32")
    lengths = np.array([[length], [max(1, length // 2)], [1], [0]])
    return {"token_ids": token_ids, "padding_mask": (np.arange(length) < lengths).astype("int32")}


def assert_same(ours, theirs):
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-6)


def traced(encoder, length):
    function = tf.function(lambda **inputs: encoder(inputs), autograph=False)
    return function.get_concrete_function(**input_specs(NAMES, length, hub=False))


def op_counts(graph):
    """Returns how often each op occurs in a graph and in all functions that it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return collections.Counter(node.op for node in nodes)


@pytest.fixture(scope="module")
def trunk():
    """The ops of an encoder without positions, and how many weights it has."""
    backbone = scrambled("none")
    function = traced(FoldedEncoder(backbone, LENGTH), LENGTH)
    return op_counts(function.graph), len(backbone.weights)


@pytest.fixture(scope="module")
def loaded(exported):
    """The SavedModel of `exported_model()`; tests leave its weights as they are."""
    return tf.saved_model.load(str(exported))


def signatures(model):
    """The signatures of an export of a model, before they are written."""
    backbone = getattr(model, "backbone", model)
    return _signatures(model, backbone, saved_cases.LENGTH, dynamic_length=False)


def hub_rows():
    """Rows for `exported_model()`, under its own names and under those of TF Hub."""
    inputs = rows(saved_cases.LENGTH)
    inputs["token_ids"] %= len(saved_cases.VOCABULARY)
    inputs["segment_ids"] = np.zeros_like(inputs["token_ids"])
    names = zip(("input_word_ids", "input_mask", "input_type_ids"), inputs.values(), strict=True)
    return inputs, {name: tf.constant(value) for name, value in names}


# one of each kind: none, the absolute ones, low rank, a table, buckets, a slope, both
KINDS = {"none", "absolute", "tupe_a", "free_table", "t5", "alibi", "tupe_r"}


@pytest.mark.parametrize(
    ("position", "options"),
    [
        pytest.param(name, {}, marks=[] if name in KINDS else pytest.mark.slow)
        for name in CONTENT_FREE
    ]
    + [
        pytest.param(name, {"cls": "untied"}, marks=[] if name == "tupe_r" else pytest.mark.slow)
        for name in CONTENT_FREE
        if positions.get(name).options.get("cls") == "tied"
    ],
)
def test_a_term_without_words_is_one_addition(position, options, trunk):
    backbone = scrambled(position, position_options=options)
    function = traced(FoldedEncoder(backbone, LENGTH), LENGTH)
    trunk_ops, num_weights = trunk
    added = op_counts(function.graph) - trunk_ops
    assert set(added) <= {"AddV2", "Placeholder", "Const", "ExpandDims", "Transpose"}, added
    assert len(function.graph.variables) == num_weights, "those of the trunk"
    inputs = {name: tf.constant(value) for name, value in rows().items()}
    assert_same(function(**inputs), backbone(rows()))


@pytest.mark.parametrize(
    "position",
    [pytest.param(name, marks=[] if name == "tupe_r" else pytest.mark.slow)
     for name in positions.METHODS],
)  # fmt: skip
def test_every_method_answers_as_before_at_all_lengths(position):
    backbone = scrambled(position)
    fixed = traced(FoldedEncoder(backbone, LENGTH), LENGTH)
    anything = traced(FoldedEncoder(backbone, LENGTH, dynamic_length=True), None)
    for length in (1, 2, 5, LENGTH):
        inputs = rows(length)
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        assert_same(anything(**tensors), backbone(inputs))
        if length == LENGTH:
            assert_same(fixed(**tensors), backbone(inputs))


def test_no_signature_of_an_export_computes_positions_and_call_does(loaded):
    none = signatures(saved_cases.scrambled_model(position="none", num_segments=2))
    trunk = op_counts(none["serving_default"].graph)
    arithmetic = {"MatMul", "BatchMatMulV2", "Einsum", "Log", "GatherV2", "ResourceGather"}
    arithmetic |= {"ReadVariableOp", "VarHandleOp", "Minimum", "SelectV2"}
    assert sorted(loaded.signatures) == ["dynamic_length", "encode", "serving_default"]
    for name, signature in loaded.signatures.items():
        counts = op_counts(signature.graph)
        assert {op: counts[op] for op in arithmetic} == {op: trunk[op] for op in arithmetic}, name
    called = loaded.__call__.get_concrete_function(
        input_specs(("token_ids", "padding_mask", "segment_ids"), None), training=False
    )
    assert op_counts(called.graph)["ReadVariableOp"] > trunk["ReadVariableOp"], "can be trained"


def test_training_changes_what_is_called_and_a_new_export_what_is_served(loaded):
    model = saved_cases.exported_model()
    backbone, (inputs, hub) = model.backbone, hub_rows()
    before = backbone(inputs)
    for flag in (False, True):  # with dropout only the change of the weights is looked at
        assert np.isfinite(loaded(hub, training=flag)["default"]).all()
    generator, weights = np.random.default_rng(11), [x.numpy() for x in loaded.variables]
    for own, theirs in zip(backbone.variables, loaded.variables, strict=True):
        if "position_bias" in own.path:
            value = generator.normal(size=own.shape).astype("float32")
            own.assign(value)
            theirs.assign(value)
    after = backbone(inputs)
    assert np.abs(after["sequence_output"] - before["sequence_output"]).max() > 1e-2
    try:
        assert_same(loaded(hub), after)
        assert_same(loaded.signatures["serving_default"](**hub), before)  # as the docstring says
    finally:
        for variable, value in zip(loaded.variables, weights, strict=True):
            variable.assign(value)
    again = signatures(model)
    assert_same(again["serving_default"](**hub), after)
    assert_same(again["encode"](**{k: tf.constant(v) for k, v in inputs.items()}), after)


def test_products_of_large_position_weights_are_constants_at_all_lengths_too():
    backbone = TupeBackbone(20, 1, 12, 768, 11, position="tupe_r", max_sequence_length=64)
    generator = np.random.default_rng(1)
    for weight in backbone.trainable_weights:
        if "position" in weight.path:
            weight.assign(generator.normal(size=weight.shape) * 0.3)
    anything = FoldedEncoder(backbone, 64, dynamic_length=True)
    assert set(anything.constants) == {"position_bias"}


def test_lengths_above_the_constant_or_the_table_are_refused(loaded):
    def ones(length):
        names = ("input_word_ids", "input_mask", "input_type_ids")
        return {name: tf.ones((1, length), tf.int32) for name in names}

    longer = ones(saved_cases.LENGTH + 1)
    assert loaded(longer)["sequence_output"].shape[1] == 6, "its table has 7 positions"
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 5 tokens"):
        loaded.signatures["dynamic_length"](**longer)
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        loaded.signatures["serving_default"](**longer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 7 tokens"):
        loaded(ones(saved_cases.MAX_LENGTH + 1))


@pytest.mark.parametrize("kind", ["middle", "words"])
def test_a_term_that_changes_with_length_or_words_is_not_a_constant(kind):
    class Own(keras.layers.Layer):
        """A bias by the distance from the middle of the text, or by the words."""

        def call(self, hidden_states):
            length = keras.ops.shape(hidden_states)[1]
            places = keras.ops.cast(keras.ops.arange(length), "float32")
            middle = keras.ops.cast(length, "float32") / 2
            bias = keras.ops.abs(places - middle) * keras.ops.ones((1, 2, length, 1))
            if kind == "middle":
                return bias
            return keras.ops.mean(hidden_states) * keras.ops.ones_like(bias) * places

        def compute_output_spec(self, hidden_states):
            length = hidden_states.shape[1]
            return keras.KerasTensor((1, 2, length, length), "float32")

    record = positions.PositionMethod(
        summary="a method of one's own", source="a test", equation="s_{ij}",
        logits_oracle=lambda tokens, weights, dims, options: tokens,
        bias=lambda dims, options: Own(name="position_bias"), reads_words=kind == "words",
    )  # fmt: skip
    positions.METHODS["own"] = record
    try:
        backbone = scrambled("own")
        anything = FoldedEncoder(backbone, LENGTH, dynamic_length=True)
        for length in (3, LENGTH):
            tensors = {name: tf.constant(value) for name, value in rows(length).items()}
            for encoder in (FoldedEncoder(backbone, length), anything):
                assert_same(encoder(tensors), backbone(rows(length)))
    finally:
        del positions.METHODS["own"]


def test_weight_regularizers_become_losses(loaded):
    (loss,) = loaded.regularization_losses
    kernel = saved_cases.exported_model().backbone.get_layer("pooled_dense").kernel
    expected = 0.1 * np.square(kernel.numpy()).sum()
    np.testing.assert_allclose(loss(), expected, rtol=1e-5)


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmno"]


@pytest.mark.parametrize(
    ("num_classes", "activation"),
    [
        pytest.param(3, None, marks=pytest.mark.slow),
        pytest.param(1, None, marks=pytest.mark.slow),
        pytest.param(2, "sigmoid", marks=pytest.mark.slow),
    ],
)
def test_classifiers_give_probabilities_of_ids_of_texts_and_of_pairs(
    tmp_path, num_classes, activation
):
    model = TupeTextClassifier(
        scrambled("tupe_r", num_segments=2), num_classes, activation=activation
    )
    ids = np.array([[2, 5, 6, 3, 0, 0, 0, 0, 0]], "int32")
    pair = np.array([[2, 5, 6, 3, 7, 3, 0, 0, 0]], "int32")
    segments = np.array([[0, 0, 0, 0, 1, 1, 0, 0, 0]], "int32")

    def expected(token_ids, segment_ids):
        inputs = {"token_ids": token_ids, "padding_mask": (token_ids > 0).astype("int32")}
        answers = model({**inputs, "segment_ids": segment_ids}).numpy()
        if activation or num_classes == 1:
            return answers
        shares = np.exp(answers)
        return shares / shares.sum(axis=1, keepdims=True)

    export_encoder(model, tmp_path / "ids", length=LENGTH)
    export_text_model(model, WordPiece(PIECES), tmp_path / "text", length=LENGTH)
    encoder, text = (tf.saved_model.load(str(tmp_path / name)) for name in ("ids", "text"))
    hub = {
        "input_word_ids": ids,
        "input_mask": (ids > 0).astype("int32"),
        "input_type_ids": ids * 0,
    }
    answers = [
        encoder.signatures["classify"](**{k: tf.constant(v) for k, v in hub.items()}),
        text.signatures["classify"](text=tf.constant(["a b"])),
    ]
    for answer in answers:
        np.testing.assert_allclose(answer["probabilities"], expected(ids, ids * 0), atol=1e-6)
    answer = text.signatures["classify_pair"](
        text=tf.constant(["a b"]), text_pair=tf.constant(["c"])
    )
    np.testing.assert_allclose(answer["probabilities"], expected(pair, segments), atol=1e-6)
    assert "fill_mask" not in text.signatures
    assert not hasattr(encoder, "mlm")
