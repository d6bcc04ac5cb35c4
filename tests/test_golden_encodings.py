"""Parity of the encodings since 2021 with released code."""

import ast

import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, assert_close, built, skip_float64_on_jax
from keras import ops

from keras_tupe.positions import Dims, get
from keras_tupe.positions.alibi import AlibiBias
from keras_tupe.positions.data_dependent_alibi import ForgetfulAttention
from keras_tupe.positions.pope import PolarAngles, PolarAttention
from keras_tupe.positions.rope import RotaryAngles, rates

HEADS, DIM, LENGTH = 3, 8, 11


@pytest.fixture(scope="module")
def released():
    """The arrays of the file by name."""
    with np.load(GOLDEN / "encodings.npz") as file:
        return dict(file)


@pytest.mark.parametrize("heads", [3, 8, 12])
def test_alibi(heads, released):
    bias = AlibiBias(heads, dtype="float64")(np.zeros((1, LENGTH, 4)))
    # the slopes are those of torch's default type there
    assert_close(ops.convert_to_numpy(bias)[0], released[f"alibi/{heads}"], 1e-10)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("side", ["both", "causal"])
def test_data_dependent_alibi(side, dtype, tolerance, released):
    skip_float64_on_jax(dtype)
    kernel, bias, theirs = (
        released[f"data_dependent_alibi/{side}/{name}"] for name in ("kernel", "bias", "logits")
    )
    x = ops.cast(released["data_dependent_alibi/hidden_states"], dtype)
    layer = ForgetfulAttention(HEADS, DIM, bidirectional=side == "both", dtype=dtype)
    sides = 2 if side == "both" else 1  # theirs are the heads of one side, then of the other
    values = {"key/gate_kernel": kernel.reshape(-1, sides, HEADS).swapaxes(1, 2)}
    values |= {"key/gate_bias": bias.reshape(sides, HEADS).T}
    built(layer, HEADS * DIM, {**values, "query/kernel": np.zeros((HEADS * DIM, HEADS, DIM))})
    logits = layer.all_logits(layer.query_dense(x), layer.key_dense(x), None, None)
    seen = np.tril(np.ones((LENGTH, LENGTH))) if side == "causal" else 1
    got, wanted = ops.convert_to_numpy(logits) * seen, theirs * seen
    assert np.abs(wanted).max() > 1
    assert_close(got, wanted, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_pope(dtype, tolerance, released):
    skip_float64_on_jax(dtype)
    query, key = (
        ops.cast(np.swapaxes(released[f"pope/{name}"], 1, 2), dtype) for name in ("query", "key")
    )
    layer = PolarAttention(HEADS, DIM, dtype=dtype)
    built(layer, HEADS * DIM, {"phase": released["pope/phase"]})
    angles = PolarAngles(DIM, dtype=dtype)(np.zeros((1, LENGTH, HEADS * DIM)))
    got = ops.convert_to_numpy(layer.all_logits(query, key, None, angles)) * DIM**0.5
    assert_close(got, released["pope/products"], tolerance)


def test_angles_of_rope(released):
    """Bases, shares, linear and NTK scaling and YaRN: `ROPE_INIT_FUNCTIONS` of transformers."""
    kinds = {"default": "none", "dynamic": "ntk"}
    settings = [ast.literal_eval(str(text)) for text in released["rope/settings"]]
    assert {kind for kind, *_ in settings} == {"default", "linear", "dynamic", "yarn"}
    for index, (kind, theta, head, partial, factor, before) in enumerate(settings):
        scaling = kinds.get(kind, kind)
        width = RotaryAngles(head, partial=partial).width
        got, multiplier = rates(width, theta, scaling, factor, before)
        np.testing.assert_allclose(got, released[f"rope/{index}/rates"], rtol=1e-12)
        wanted = released[f"rope/{index}/multiplier"]
        np.testing.assert_allclose(multiplier, wanted, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_attention_of_modernbert(dtype, tolerance, released):
    """Layers 0 and 3 see all and have the global theta, the others a window and the local one."""
    skip_float64_on_jax(dtype)
    method = get("rope")
    options = method.resolve({"theta": 700.0, "local_theta": 30.0, "every": 3})
    x = ops.cast(released["modernbert/hidden_states"], dtype)
    pattern = {"window": 3, "every": 3}
    pattern = {"attention_pattern": "sliding_window", "pattern_options": pattern}
    for layer in range(4):
        dims = Dims(HEADS, DIM, LENGTH, dtype=dtype, layer_index=layer, **pattern)
        attention, angles = method.attention(dims, options), method.shared(dims, options)(x)
        theirs = {
            name.removeprefix(f"modernbert/{layer}/"): value for name, value in released.items()
        }
        kernels = np.moveaxis(theirs["Wqkv/kernel"].reshape(-1, 3, HEADS, DIM), 1, 0)
        biases = theirs["Wqkv/bias"].reshape(3, HEADS, DIM)
        values = {"output/kernel": theirs["Wo/kernel"].reshape(HEADS, DIM, -1)}
        values["output/bias"] = theirs["Wo/bias"]
        for name, kernel, bias in zip(("query", "key", "value"), kernels, biases, strict=True):
            values |= {f"{name}/kernel": kernel, f"{name}/bias": bias}
        built(attention, HEADS * DIM, values)
        scores = ops.convert_to_numpy(attention.scores(x, shared_positions=angles))
        assert (scores[0, 0, 0, -1] > 0) == (layer % 3 == 0)
        assert_close(scores, theirs["scores"], tolerance)
        output = ops.convert_to_numpy(attention(x, shared_positions=angles))
        assert_close(output, theirs["output"], tolerance)
