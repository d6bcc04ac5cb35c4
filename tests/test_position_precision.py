"""Attention logits, biases and scores stay in at least float32, inside a whole encoder."""

import numpy as np
import pytest
from keras import ops
from position_cases import (
    ENCODER_CASES,
    METHOD_NAMES,
    Case,
    by_kind,
    encoder,
    inputs,
    random_ids,
)

from training.check_method import precision
from training.check_method.precision import values, watch_attention


@pytest.mark.parametrize(
    "policy", ["mixed_float16", pytest.param("float16", marks=pytest.mark.slow), "float64"]
)  # weights in float16 are what float32 weights become in a layer of `mixed_float16`
@pytest.mark.parametrize("case", by_kind(map(Case, METHOD_NAMES)))
def test_logits_and_biases_are_in_at_least_float32_under_every_policy(case, policy):
    precision.check_dtypes(case, policy)


# float16 rounds as bfloat16 does and overflows besides
@pytest.mark.parametrize(
    "policy", ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("case", by_kind(ENCODER_CASES))
def test_half_precision_rounds_no_position_term_and_gives_finite_outputs(case, policy):
    precision.check_half_precision(case, policy)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_biases_beyond_half_precision_stay_finite(policy):
    model = encoder(Case("t5"), policy)
    table = model.get_layer("position_bias").parts[0].embeddings
    table.assign(ops.convert_to_tensor(table) * 1e6)  # float16 ends at 65504
    seen = watch_attention(model)
    answer = model(inputs(random_ids(3, 7)))
    assert np.abs(values(seen[0]["logits"])).max() > 65504
    assert np.isfinite(values(seen[0]["logits"])).all()
    assert np.isfinite(values(answer["sequence_output"])).all()
