"""Attention logits, biases and scores stay in at least float32, inside a whole encoder."""

import functools

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import ENCODER_CASES, METHOD_NAMES, Case, encoder, inputs, random_ids

GIVEN = inputs(random_ids(3, 7), lengths=[7, 4, 0])  # one row is padding alone


def watch_attention(model):
    """Returns a list that the next call fills with what each block's `logits` takes and gives."""
    seen = []
    for index in range(model.num_layers):
        attention = model.get_layer(f"block_{index}").attention

        def watched(query, key, bias, shared, logits=attention.logits):
            answer = logits(query, key, bias, shared)
            arrays = {"query": query, "key": key, "bias": bias, "shared": shared, "logits": answer}
            seen.append({name: array for name, array in arrays.items() if array is not None})
            return answer

        attention.logits = watched
    return seen


def dtypes(tensors):
    return {keras.backend.standardize_dtype(tensor.dtype) for tensor in keras.tree.flatten(tensors)}


def values(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float64"))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("mixed_float16", "float32"),
        ("float16", "float32"),
        ("float64", "float64"),
    ],
)
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_logits_and_biases_are_in_at_least_float32_under_every_policy(name, policy, expected):
    model = encoder(Case(name), policy, num_layers=1)
    seen = watch_attention(model)
    answer = model(GIVEN)
    assert len(seen) == model.num_layers
    for block in seen:
        assert dtypes(block) == {expected}
    compute = keras.dtype_policies.get(policy).compute_dtype
    assert dtypes(answer["sequence_output"]) == {compute}
    attention = model.get_layer("block_0").attention
    x = ops.ones((1, 7, 10), compute)
    place = {
        "position_bias": seen[0].get("bias"),
        "shared_positions": seen[0].get("shared"),
    }
    assert dtypes(attention.scores(x, **place)) == {expected}


@functools.cache
def exact(case):
    """Returns what `logits` takes and gives, and the outputs, in float32."""
    model = encoder(case, "float32")
    seen = watch_attention(model)
    return model(GIVEN), seen


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("case", ENCODER_CASES, ids=str)
def test_half_precision_rounds_no_position_term_and_gives_finite_outputs(case, policy):
    model = encoder(case, policy)
    seen = watch_attention(model)
    answer = model(GIVEN)
    exact_answer, exact_seen = exact(case)
    for one, other in zip(seen, exact_seen, strict=True):
        for place in ("bias", "shared"):
            got, wanted = (keras.tree.flatten(block.get(place)) for block in (one, other))
            for tensor, reference in zip(got, wanted, strict=True):
                if reference is not None:
                    np.testing.assert_allclose(values(tensor), values(reference), rtol=0, atol=1e-6)
    for name in ("sequence_output", "pooled_output"):
        got, wanted = values(answer[name]), values(exact_answer[name])
        assert np.isfinite(got).all()
        assert np.abs(got - wanted).mean() < 0.05


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
