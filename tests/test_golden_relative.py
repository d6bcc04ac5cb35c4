"""Parity of Shaw's method, Huang's method 4, XLNet and DeBERTa with released implementations."""

import json

import keras
import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from keras import ops

from keras_tupe.models import TupeBackbone, TupeMaskedLM
from keras_tupe.positions.deberta import DisentangledAttention
from keras_tupe.positions.xlnet import RelativeSinusoids, XLNetAttention


def bert_weights(released, num_layers, num_heads):
    """Returns the released weights under our paths; torch keeps (out, in)."""

    def get(name):
        return released[f"weight/{name}"]

    def dense(ours, theirs):
        yield f"{ours}/kernel", get(f"{theirs}.weight").T
        yield f"{ours}/bias", get(f"{theirs}.bias")

    def norm(ours, theirs):
        yield f"{ours}/gamma", get(f"{theirs}.weight")
        yield f"{ours}/beta", get(f"{theirs}.bias")

    def projection(ours, theirs):
        kernel = get(f"{theirs}.weight").T
        yield f"{ours}/kernel", kernel.reshape(len(kernel), num_heads, -1)
        yield f"{ours}/bias", get(f"{theirs}.bias").reshape(num_heads, -1)

    yield "token_embedding/embeddings", get("bert.embeddings.word_embeddings.weight")
    yield "segment_embedding/embeddings", get("bert.embeddings.token_type_embeddings.weight")
    yield from norm("embeddings_layer_norm", "bert.embeddings.LayerNorm")
    for index in range(num_layers):
        block, layer = f"block_{index}", f"bert.encoder.layer.{index}"
        for side in ("query", "key", "value"):
            yield from projection(f"{block}/attention/{side}", f"{layer}.attention.self.{side}")
        output = get(f"{layer}.attention.output.dense.weight").T
        yield f"{block}/attention/output/kernel", output.reshape(num_heads, -1, len(output))
        yield f"{block}/attention/output/bias", get(f"{layer}.attention.output.dense.bias")
        # Theirs is shared by heads and indexed by query minus key.
        table = get(f"{layer}.attention.self.distance_embedding.weight")[::-1]
        yield f"{block}/attention/position_table/distance_embeddings", table[:, None]
        yield from norm(f"{block}/attention_layer_norm", f"{layer}.attention.output.LayerNorm")
        yield from dense(f"{block}/feedforward_intermediate", f"{layer}.intermediate.dense")
        yield from dense(f"{block}/feedforward_output", f"{layer}.output.dense")
        yield from norm(f"{block}/feedforward_layer_norm", f"{layer}.output.LayerNorm")
    yield from dense("mlm_head/dense", "cls.predictions.transform.dense")
    yield from norm("mlm_head/layer_norm", "cls.predictions.transform.LayerNorm")
    yield "mlm_head/output_bias", get("cls.predictions.bias")


def released_bert(position, released, dtype):
    """Returns a masked LM with the released weights; they have no pooler and an unused table."""
    config = json.loads(str(released["config"]))
    backbone = TupeBackbone(
        config["vocab_size"],
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["hidden_size"],
        config["intermediate_size"],
        position=position,
        position_options={"share_heads": True},
        max_sequence_length=config["max_position_embeddings"],
        num_segments=config["type_vocab_size"],
        layer_norm_epsilon=config["layer_norm_eps"],
        dtype=dtype,
    )
    model = TupeMaskedLM(backbone)
    ours = {weight.path: weight for weight in model.weights}
    for path, value in bert_weights(released, backbone.num_layers, backbone.num_heads):
        (match,) = [key for key in ours if key.endswith(path)]
        ours.pop(match).assign(value)
    assert {path.split("/")[-2] for path in ours} == {"pooled_dense"}
    return model


@pytest.mark.parametrize(
    ("position", "name"), [("shaw", "bert_relative_key"), ("qkr_4", "bert_relative_key_query")]
)
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_shaw_and_method_4_equal_the_released_bert(position, name, dtype, tolerance):
    skip_float64_on_jax(dtype)
    golden = np.load(GOLDEN / f"{name}.npz")
    model = released_bert(position, golden, dtype)
    inputs = {
        key: golden[key].astype("int32") for key in ("token_ids", "padding_mask", "segment_ids")
    }
    backbone = model.backbone
    blocks = [backbone.get_layer(f"block_{index}") for index in range(backbone.num_layers)]
    first = backbone.get_layer("embeddings_dropout")
    probe = keras.Model(backbone.inputs, [layer.output for layer in (first, *blocks)])
    hidden_states = probe(inputs)
    real = inputs["padding_mask"].astype(bool)
    assert not real.all(), "the fixture has padding"
    for ours, theirs in zip(hidden_states, golden["hidden_states"], strict=True):
        assert_close(ops.convert_to_numpy(ours)[real], theirs[real], tolerance)
    for block, states, theirs in zip(
        blocks, hidden_states, golden["attention_scores"], strict=False
    ):
        scores = block.attention.scores(states, padding_mask=inputs["padding_mask"])
        ours = np.swapaxes(ops.convert_to_numpy(scores), 1, 2)[real]  # of real queries
        np.testing.assert_allclose(ours, np.swapaxes(theirs, 1, 2)[real], rtol=0, atol=tolerance)
    places = np.tile(np.arange(real.shape[1], dtype="int32"), (len(real), 1))
    logits = ops.convert_to_numpy(model({**inputs, "mask_positions": places}))
    assert_close(logits[real], golden["mlm_logits"][real], tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_xlnet_equals_the_released_relative_attention(dtype, tolerance):
    skip_float64_on_jax(dtype)
    golden = np.load(GOLDEN / "xlnet_attention.npz")
    hidden_states = golden["hidden_states"]
    width = hidden_states.shape[-1]
    _, heads, key_dim = golden["weight/q"].shape
    sinusoids = RelativeSinusoids(width, dtype=dtype)(hidden_states)
    # Theirs begin with the largest query minus key, as ours, one further than any pair.
    theirs = golden["relative_sinusoids"][1:]
    np.testing.assert_allclose(ops.convert_to_numpy(sinusoids), theirs, rtol=0, atol=tolerance)
    layer = XLNetAttention(heads, key_dim, dtype=dtype, name="attention")
    layer.build(hidden_states.shape)
    weights = {weight.path.removeprefix("attention/"): weight for weight in layer.weights}
    for ours, name in (("query", "q"), ("key", "k"), ("value", "v"), ("distance", "r")):
        weights[f"{ours}/kernel"].assign(golden[f"weight/{name}"])
    weights["output/kernel"].assign(np.transpose(golden["weight/o"], (1, 2, 0)))
    weights["content_bias"].assign(golden["weight/r_w_bias"])  # u
    weights["distance_bias"].assign(golden["weight/r_r_bias"])  # v
    x = ops.convert_to_tensor(hidden_states, dtype=dtype)
    scores = ops.convert_to_numpy(layer.scores(x, shared_positions=sinusoids))
    expected = np.transpose(golden["attention_scores"], (2, 3, 0, 1))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    output = ops.convert_to_numpy(layer(x, shared_positions=sinusoids)) + hidden_states
    centered = output - output.mean(-1, keepdims=True)
    normed = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
    normed = normed * golden["weight/layer_norm.weight"] + golden["weight/layer_norm.bias"]
    np.testing.assert_allclose(normed, golden["output"], rtol=0, atol=tolerance)


def disentangled_attention(golden, variant, dtype):
    """Returns a layer with the released weights; theirs has no bias of keys and no output layer."""
    width, heads = golden["weight/pos_proj.weight"].shape[0], golden["attention_scores_7"].shape[1]

    def projection(name):  # torch keeps (out, in)
        return golden[f"weight/{name}.weight"].T.reshape(width, heads, -1)

    query, key, value = np.split(projection("in_proj"), 3, axis=-1)  # head by head
    kernels = {
        "query/kernel": query,
        "key/kernel": key,
        "value/kernel": value,
        "distance_key/kernel": projection("pos_proj"),
        "distance_query/kernel": projection("pos_q_proj"),
        "output/kernel": np.eye(width).reshape(heads, -1, width),
    }
    biases = {"query": "q_bias", "value": "v_bias", "distance_query": "pos_q_proj.bias"}
    layer = DisentangledAttention(
        heads, width // heads, variant=variant, dtype=dtype, name="attention"
    )
    layer.build((None, None, width))
    ours = {weight.path.removeprefix("attention/"): weight for weight in layer.trainable_weights}
    for name, value in kernels.items():
        ours.pop(name).assign(value)
    for name, theirs in biases.items():
        if f"{name}/bias" in ours:  # the paper's projections of distances have none
            ours.pop(f"{name}/bias").assign(golden[f"weight/{theirs}"].reshape(heads, -1))
    assert sorted(ours) == ["key/bias", "output/bias"]  # zeros
    return layer


@pytest.mark.parametrize("length", [7, 3])  # beyond k = 4, and below
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])
def test_deberta_equals_the_released_attention(dtype, tolerance, length):
    golden = np.load(GOLDEN / "deberta_attention.npz")
    mask = golden[f"padding_mask_{length}"]
    x = ops.convert_to_tensor(golden[f"hidden_states_{length}"], dtype=dtype)
    real = mask.astype(bool)
    assert not real.all(), "the fixture has padding"
    wanted = np.swapaxes(golden[f"attention_scores_{length}"], 1, 2)[real]  # of real queries
    distances = ops.convert_to_tensor(golden["weight/rel_embeddings"], dtype=dtype)
    released, paper = (
        disentangled_attention(golden, variant, dtype) for variant in ("released", "paper")
    )
    given = {"shared_positions": distances, "padding_mask": mask}
    scores, other = (
        np.swapaxes(ops.convert_to_numpy(layer.scores(x, **given)), 1, 2)[real]
        for layer in (released, paper)
    )
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=tolerance)
    assert np.abs(other - wanted).max() > 1e-2, "the paper has another third term"
    output = ops.convert_to_numpy(released(x, **given))
    np.testing.assert_allclose(
        output[real], golden[f"context_{length}"][real], rtol=0, atol=tolerance
    )


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_xlnet_with_a_memory_equals_the_released_transformer_xl(dtype, tolerance):
    skip_float64_on_jax(dtype)
    golden = np.load(GOLDEN / "transfo_xl.npz")
    memory_length, segment_length = int(golden["memory_length"]), int(golden["segment_length"])
    for layer in range(2):
        hidden_states, wanted = golden[f"in_{layer}"], golden[f"out_{layer}"]
        batch, length, width = hidden_states.shape
        assert length == 3 * segment_length > memory_length + segment_length, "states are cut off"
        theirs = {
            name.rpartition("/")[2]: value
            for name, value in golden.items()
            if name.startswith(f"weight/{layer}/")
        }
        heads, key_dim = theirs["r_w_bias"].shape
        attention = XLNetAttention(
            heads,
            key_dim,
            attention_pattern="causal",
            memory_length=memory_length,
            segment_length=segment_length,
            dtype=dtype,
            name="attention",
        )
        attention.build(hidden_states.shape)
        weights = {weight.path.removeprefix("attention/"): weight for weight in attention.weights}
        kernels = np.split(theirs["qkv_net.weight"].T, 3, axis=1)  # torch keeps (out, in)
        for name, kernel in zip(("query", "key", "value"), kernels, strict=True):
            weights[f"{name}/kernel"].assign(kernel.reshape(width, heads, key_dim))
        weights["distance/kernel"].assign(theirs["r_net.weight"].T.reshape(width, heads, key_dim))
        weights["output/kernel"].assign(theirs["o_net.weight"].T.reshape(heads, key_dim, width))
        weights["content_bias"].assign(theirs["r_w_bias"])  # u
        weights["distance_bias"].assign(theirs["r_r_bias"])  # v
        whole = np.zeros((1, memory_length + segment_length, width))
        # Theirs attends to zeros where there is no memory yet.
        before = np.zeros((batch, memory_length, width))
        found = attention(
            ops.convert_to_tensor(hidden_states, dtype=dtype),
            shared_positions=RelativeSinusoids(width, dtype=dtype)(whole),
            remembered=ops.convert_to_tensor(np.concatenate([before, hidden_states], 1), dtype),
            memory_mask=np.ones((batch, memory_length), "int32"),
        )
        found = ops.convert_to_numpy(found) + hidden_states
        centered = found - found.mean(-1, keepdims=True)
        normed = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + golden["epsilon"])
        normed = normed * theirs["layer_norm.weight"] + theirs["layer_norm.bias"]
        np.testing.assert_allclose(normed, wanted, rtol=0, atol=tolerance)
