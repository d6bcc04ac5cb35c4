"""Parity with the numbers of TUPE's released code (see golden/README.md).

Hidden states and logits of heads are compared in `convert/test_tupe_checkpoint.py`.
"""

import json

import keras
import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from keras import ops

from keras_tupe.convert.tupe_checkpoint import model_of_released_weights
from keras_tupe.layers.relative_bucket_bias import relative_buckets

SIZES = {
    "num_layers": "encoder_layers",
    "num_heads": "encoder_attention_heads",
    "hidden_dim": "encoder_embed_dim",
    "intermediate_dim": "encoder_ffn_embed_dim",
    "max_sequence_length": "max_positions",
    "relative_position": "rel_pos",
}


@pytest.mark.parametrize("name", ["tupe_a", "tupe_r"])
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_attention_logits_equal_those_of_the_released_encoder(name, dtype, tolerance):
    skip_float64_on_jax(dtype)
    golden = np.load(GOLDEN / f"{name}.npz")
    config = json.loads(str(golden["config"]))
    weights = {key[7:]: golden[key] for key in golden.files if key.startswith("weight/")}
    settings = {theirs: config[ours] for ours, theirs in SIZES.items()}
    model, _ = model_of_released_weights(settings, weights, "golden", dtype=dtype)
    backbone, ids = model.backbone, golden["token_ids"].astype("int32")
    real = ids != config["pad_id"]
    assert not real.all(), "the fixture has padding"
    blocks = [backbone.get_layer(f"block_{index}") for index in range(backbone.num_layers)]
    layers = [backbone.get_layer("zero_padded"), *blocks]
    probe = keras.Model(backbone.inputs, [layer.output for layer in layers])
    *states, last = probe({"token_ids": ids, "padding_mask": real})
    bias = backbone.position_bias(states[0])
    for block, x, theirs in zip(blocks, states, golden["attention_logits"], strict=True):
        query, key = block.attention.query_dense(x), block.attention.key_dense(x)
        logits = ops.convert_to_numpy(block.attention.all_logits(query, key, bias, None))
        seen = np.broadcast_to(real[:, None, None], theirs.shape)
        assert np.isneginf(theirs[~seen]).all()
        assert_close(logits[seen], theirs[seen], tolerance)
    assert_close(ops.convert_to_numpy(last)[real], golden["hidden_states"][-1][real], tolerance)


@pytest.mark.parametrize("kind", ["bi", "causal"])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (16, 64), (64, 256)])
def test_buckets_equal_the_reference_entry_for_entry(num_buckets, max_distance, kind):
    golden = np.load(GOLDEN / "t5_buckets.npz")
    distances = golden["distance_key_minus_query"]
    buckets = relative_buckets(distances, num_buckets, max_distance, kind == "bi")
    expected = golden[f"buckets_{num_buckets}_{max_distance}_{kind}"]
    np.testing.assert_array_equal(ops.convert_to_numpy(buckets), expected)
