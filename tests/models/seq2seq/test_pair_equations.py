"""Models of pairs are the original Transformer around any position method; nothing leaks."""

import numpy as np
import pytest
from keras import ops
from pair_models import logits_of, pair_equation, pair_inputs, pair_lm, shared_lm, some_pairs
from position_cases import METHOD_NAMES, VOCABULARY, Case, random_ids
from tolerances import in_float64

from keras_tupe.trunk.steps import Steps
from training.check_method.cases import cases_of

# What is added to embeddings, a bias for all blocks, and what acts inside of attention.
FEW = (Case("absolute"), Case("tupe_r"), Case("shaw"))
CASES = [case for name in METHOD_NAMES for case in (cases_of(name)[0], cases_of(name)[-1])]


def fits_a_decoder(case):
    """Whether its buckets, which look only to the left there, end behind the exact ones."""
    options = case.resolved()
    return "num_buckets" not in options or options["max_distance"] > options["num_buckets"] // 2


EVERY = [
    pytest.param(case, id=str(case), marks=[] if case in FEW else pytest.mark.slow)
    for case in dict.fromkeys(CASES)
    if fits_a_decoder(case)
]


# Equations


def check_equation(model, given):
    wanted = pair_equation(model, given)
    states, got = model.backbone(given), logits_of(model, given)
    assert np.ptp(wanted["logits"]) > 1
    for side in ("encoder", "decoder"):
        real = given[f"{side}_padding_mask"].astype(bool)
        found = ops.convert_to_numpy(states[f"{side}_sequence_output"])
        np.testing.assert_allclose(found[real], wanted[side][real], rtol=0, atol=in_float64(1e-12))
    np.testing.assert_allclose(got[real], wanted["logits"][real], rtol=0, atol=in_float64(1e-12))


@pytest.mark.parametrize("case", EVERY)
def test_the_model_equals_the_equations_around_the_oracle(case):
    # distances of more than 8, of which buckets of one direction and of two differ
    check_equation(shared_lm(case), some_pairs(target_lengths=(13, 4, 1)))


@pytest.mark.parametrize("name", ["absolute", pytest.param("tupe_r", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kwargs",
    [
        {"normalize_first": True, "num_layers": 2, "num_decoder_layers": 1},
        {"normalize_embeddings": False, "scale_embeddings": True, "layer_norm_epsilon": 0.03},
    ],
    ids=["pre-LN", "the original's"],
)
def test_every_switch_of_the_trunks_does_what_it_says(name, kwargs):
    check_equation(pair_lm(Case(name), **kwargs), some_pairs())


def test_no_method_lacks_the_case_of_all_its_options():
    assert all(fits_a_decoder(case) for case in CASES)


# Leaks


@pytest.mark.parametrize("case", EVERY)
def test_a_token_of_a_target_changes_nothing_before_it(case):
    model, given = shared_lm(case), some_pairs((6, 3), (7, 7))
    before = logits_of(model, given)
    for last in range(6):
        ids = given["decoder_token_ids"].copy()
        ids[:, last + 1 :] = (ids[:, last + 1 :] + 1) % VOCABULARY
        after = logits_of(model, {**given, "decoder_token_ids": ids})
        np.testing.assert_array_equal(after[:, : last + 1], before[:, : last + 1])
        assert (after[:, last + 1 :] != before[:, last + 1 :]).any(-1).all()


@pytest.mark.parametrize("case", EVERY)
def test_what_stands_in_padding_is_invisible_to_the_bit(case):
    model, given = shared_lm(case), some_pairs()
    real = given["decoder_padding_mask"].astype(bool)
    wanted = logits_of(model, given)
    for side in ("encoder", "decoder"):
        name, mask = f"{side}_token_ids", given[f"{side}_padding_mask"]
        other = {**given, name: np.where(mask, given[name], (given[name] + 5) % VOCABULARY)}
        assert (other[name] != given[name]).any()
        np.testing.assert_array_equal(logits_of(model, other)[real], wanted[real])
        unmasked = logits_of(model, {**given, f"{side}_padding_mask": np.ones_like(mask)})
        if side == "encoder":  # a target's padding stands behind its tokens, which see no later one
            assert (unmasked[1] != wanted[1]).any()
        else:
            np.testing.assert_array_equal(unmasked[real], wanted[real])


@pytest.mark.parametrize("case", EVERY)
def test_more_padding_changes_nothing(case):
    model, (sources, targets) = shared_lm(case), (random_ids(2, 9, 1), random_ids(2, 8, 2))
    wanted = logits_of(model, pair_inputs(sources[:, :6], targets[:, :5]))
    got = logits_of(model, pair_inputs(sources, targets, [6, 6], [5, 5]))
    np.testing.assert_allclose(got[:, :5], wanted, rtol=0, atol=in_float64(1e-12))


def test_each_target_sees_its_own_source():
    model, given = shared_lm(Case("tupe_r")), some_pairs((6, 6), (7, 7))
    ids = given["encoder_token_ids"].copy()
    ids[1, 3] = (ids[1, 3] + 1) % VOCABULARY
    before = logits_of(model, given)
    after = logits_of(model, {**given, "encoder_token_ids": ids})
    np.testing.assert_array_equal(after[0], before[0])
    assert (after[1] != before[1]).any(-1).all()


# Steps


def check_steps(model, given, first):
    """Checks the logits behind each token, one after the other, against those of a call."""
    whole = logits_of(model, given)
    ids = given["decoder_token_ids"]
    steps = Steps(model.backbone.decoder_trunk, ids.shape[1])
    encoded = model._encoded(given)
    x, caches = steps.prefill(ops.convert_to_tensor(ids[:, :first]), encoded)
    found = [x]
    for index in range(first, ids.shape[1]):
        x, caches = steps.step(
            ops.convert_to_tensor(ids[:, index][:, None]), caches, index, encoded
        )
        found.append(x)
    got = ops.convert_to_numpy(model.logits(ops.concatenate(found, axis=1)))
    np.testing.assert_allclose(got, whole, rtol=0, atol=in_float64(1e-12))


@pytest.mark.parametrize("case", EVERY)
def test_steps_answer_as_the_whole_target(case):
    check_steps(shared_lm(case), some_pairs((6, 3, 1), (7, 7, 7)), first=3)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"normalize_first": True},
        {"normalize_embeddings": False, "scale_embeddings": True},
    ],
    ids=["pre-LN", "the original's"],
)
def test_every_trunk_has_steps(kwargs):
    check_steps(pair_lm("absolute", **kwargs), some_pairs((6, 3), (7, 7)), first=1)
