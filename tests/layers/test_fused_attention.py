"""Fused attention: the same answers as the core where it is taken, and a reason where it is not."""

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import CASES, Case, encoder, inputs, random_ids

from keras_tupe.layers.attention.fused import fused_attention

FITTING = (
    *("none", "absolute", "bert_ad", "rope", "pope", "sandwich"),
    *("tupe_a", "tupe_a_tied_cls", "diet_abs"),
)
ON_JAX = pytest.mark.skipif(
    keras.backend.backend() != "jax",
    reason="fused attention is JAX's: run with KERAS_BACKEND=jax",
)


def rows():
    given = inputs(random_ids(3, 7))
    given["padding_mask"] = np.array(given["padding_mask"])
    given["padding_mask"][0, 4:] = 0
    given["padding_mask"][2] = 0
    return given


@ON_JAX
@pytest.mark.parametrize("name", FITTING)
def test_terms_of_low_rank_are_channels(name):
    model = encoder(Case(name), dtype="float32")
    wanted = model(rows())["sequence_output"]
    with fused_attention("xla"):
        got = model(rows())["sequence_output"]
    np.testing.assert_allclose(ops.convert_to_numpy(got), ops.convert_to_numpy(wanted), atol=1e-4)


PATTERNS = {
    "causal": {"attention_pattern": "causal"},
    "window": {"attention_pattern": "sliding_window", "pattern_options": {"window": 2}},
    "causal window": {
        "attention_pattern": "sliding_window",
        "pattern_options": {"window": 2, "causal": True},
    },
}


@ON_JAX
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", ["absolute", "tupe_a"])
def test_plain_patterns_are_those_of_jax(name, pattern):
    model = encoder(Case(name), dtype="float32", **PATTERNS[pattern])
    given = rows()
    given["padding_mask"][2] = 1
    wanted = model(given)["sequence_output"]
    with fused_attention("xla"):
        got = model(given)["sequence_output"]
    is_real = given["padding_mask"].astype(bool)
    got, wanted = (ops.convert_to_numpy(x)[is_real] for x in (got, wanted))
    np.testing.assert_allclose(got, wanted, atol=1e-4)


@ON_JAX
def test_global_tokens_are_refused():
    options = {"window": 2, "num_global": 1}
    model = encoder(
        Case("absolute"), "float32", attention_pattern="sliding_window", pattern_options=options
    )
    with fused_attention("xla"), pytest.raises(ValueError, match="neither causal nor a plain"):
        model(rows())


@ON_JAX
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("t5"), "no low rank"),
        (Case("tupe_r"), "no low rank"),
        (Case("shaw"), "content and distance together"),
        (Case("qkr_3"), "content and distance together"),
        (Case("rope", (("cls", "untied"),)), "content and distance together"),
    ],
    ids=str,
)
def test_what_would_be_wrong_is_refused(case, reason):
    with fused_attention("xla"), pytest.raises(ValueError, match=reason):
        encoder(case, dtype="float32")(rows())


@ON_JAX
def test_dropout_and_full_precision_are_refused():
    model = encoder(Case("absolute"), dtype="float32", dropout=0.1)
    with fused_attention("xla"), pytest.raises(ValueError, match="drops no scores"):
        model(rows(), training=True)
    with fused_attention(), pytest.raises(ValueError, match="half precision"):
        model(rows())


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX has it: run on TensorFlow")
def test_other_backends_are_refused():
    with fused_attention("xla"), pytest.raises(ValueError, match="Keras runs on"):
        encoder(Case("absolute"), dtype="float32")(rows())


def test_every_fitting_method_is_known():
    assert set(FITTING) <= {case.name for case in CASES}
