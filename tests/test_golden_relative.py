"""Parity of XLNet and DeBERTa with released implementations.

Shaw's method and Huang's method 4 are compared in `convert/hugging_face/test_golden_folders.py`.
"""

import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, built, skip_float64_on_jax
from keras import ops

from keras_tupe.positions.deberta import DisentangledAttention
from keras_tupe.positions.xlnet import RelativeSinusoids, XLNetAttention


def normalized(x, epsilon, gamma, beta):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) * gamma + beta


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
    names = (("query", "q"), ("key", "k"), ("value", "v"), ("distance", "r"))
    values = {f"{ours}/kernel": golden[f"weight/{name}"] for ours, name in names}
    values["output/kernel"] = np.transpose(golden["weight/o"], (1, 2, 0))
    values["content_bias"] = golden["weight/r_w_bias"]  # u
    values["distance_bias"] = golden["weight/r_r_bias"]  # v
    layer = XLNetAttention(heads, key_dim, dtype=dtype, name="attention")
    left = built(layer, width, values)
    assert left == ["key/bias", "output/bias", "query/bias", "value/bias"]  # zeros
    x = ops.convert_to_tensor(hidden_states, dtype=dtype)
    scores = ops.convert_to_numpy(layer.scores(x, shared_positions=sinusoids))
    expected = np.transpose(golden["attention_scores"], (2, 3, 0, 1))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    output = ops.convert_to_numpy(layer(x, shared_positions=sinusoids)) + hidden_states
    norm = [golden[f"weight/layer_norm.{name}"] for name in ("weight", "bias")]
    got = normalized(output, 1e-12, *norm)
    np.testing.assert_allclose(got, golden["output"], rtol=0, atol=tolerance)


def disentangled_attention(golden, variant, dtype):
    """Returns a layer with the released weights; theirs has no bias of keys and no output layer."""
    width, heads = golden["weight/pos_proj.weight"].shape[0], golden["attention_scores_7"].shape[1]

    def projection(name):  # torch keeps (out, in)
        return golden[f"weight/{name}.weight"].T.reshape(width, heads, -1)

    kernels = np.split(projection("in_proj"), 3, axis=-1)  # head by head
    kernels = dict(zip(("query", "key", "value"), kernels, strict=True))
    kernels |= {"distance_key": projection("pos_proj"), "distance_query": projection("pos_q_proj")}
    kernels["output"] = np.eye(width).reshape(heads, -1, width)
    values = {f"{name}/kernel": value for name, value in kernels.items()}
    biases = {"query": "q_bias", "value": "v_bias", "distance_query": "pos_q_proj.bias"}
    if variant == "paper":  # its projections of distances have none
        del biases["distance_query"]
    values |= {
        f"{name}/bias": golden[f"weight/{x}"].reshape(heads, -1) for name, x in biases.items()
    }
    layer = DisentangledAttention(
        heads, width // heads, variant=variant, dtype=dtype, name="attention"
    )
    assert built(layer, width, values) == ["key/bias", "output/bias"]  # zeros
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
        lengths = {"memory_length": memory_length, "segment_length": segment_length}
        attention = XLNetAttention(
            heads, key_dim, attention_pattern="causal", **lengths, dtype=dtype, name="attention"
        )
        kernels = [*np.split(theirs["qkv_net.weight"].T, 3, axis=1), theirs["r_net.weight"].T]
        values = {  # torch keeps (out, in)
            f"{name}/kernel": kernel.reshape(width, heads, key_dim)
            for name, kernel in zip(("query", "key", "value", "distance"), kernels, strict=True)
        }
        values["output/kernel"] = theirs["o_net.weight"].T.reshape(heads, key_dim, width)
        values["content_bias"] = theirs["r_w_bias"]  # u
        values["distance_bias"] = theirs["r_r_bias"]  # v
        built(attention, width, values)
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
        norm = [theirs[f"layer_norm.{name}"] for name in ("weight", "bias")]
        normed = normalized(found, golden["epsilon"], *norm)
        np.testing.assert_allclose(normed, wanted, rtol=0, atol=tolerance)
