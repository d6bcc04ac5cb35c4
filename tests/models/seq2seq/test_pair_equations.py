"""Models of pairs are the original Transformer around any position method; nothing leaks."""

import numpy as np
import pytest
from keras import ops
from pair_models import SIDES, logits_of, pair_equation, pair_inputs, pair_lm, shared_lm, some_pairs
from position_cases import METHOD_NAMES, VOCABULARY, Case, random_ids
from tolerances import in_float64

from keras_tupe.trunk.steps import Steps
from training.check.method.cases import cases_of

# What is added to embeddings, a bias for all blocks, and what acts inside of attention.
FEW = (Case("absolute"), Case("tupe_r"), Case("shaw"))
CASES = [case for name in METHOD_NAMES for case in (cases_of(name)[0], cases_of(name)[-1])]
every_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[] if case in FEW else pytest.mark.slow)
        for case in dict.fromkeys(CASES)
    ],
)
SWITCHES = {
    "pre-LN": {"normalize_first": True, "num_layers": 2, "num_decoder_layers": 1},
    "the original's": {
        "normalize_embeddings": False,
        "scale_embeddings": True,
        "layer_norm_epsilon": 0.03,
    },
}


def near(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12))


def check_equation(model, given):
    wanted = pair_equation(model, given)
    states, got = model.backbone(given), logits_of(model, given)
    assert np.ptp(wanted["logits"]) > 1
    for side in SIDES:
        real = given[f"{side}_padding_mask"].astype(bool)
        found = ops.convert_to_numpy(states[f"{side}_sequence_output"])
        near(found[real], wanted[side][real])
    near(got[real], wanted["logits"][real])


def check_steps(model, given, first):
    """Checks the logits behind each token, one after the other, against those of a call."""
    ids = given["decoder_token_ids"]
    steps = Steps(model.backbone.decoder_trunk, ids.shape[1])
    encoded = model._encoded(given)
    x, caches = steps.prefill(ops.convert_to_tensor(ids[:, :first]), encoded)
    found = [x]
    for index in range(first, ids.shape[1]):
        token = ops.convert_to_tensor(ids[:, index][:, None])
        x, caches = steps.step(token, caches, index, encoded)
        found.append(x)
    near(model.logits(ops.concatenate(found, axis=1)), logits_of(model, given))


@every_case
def test_the_model_and_its_steps_equal_the_equations_around_the_oracle(case):
    # distances of more than 8, of which buckets of one direction and of two differ
    check_equation(shared_lm(case), some_pairs(target_lengths=(13, 4, 1)))
    check_steps(shared_lm(case), some_pairs((6, 3, 1), (7, 7, 7)), first=3)


@pytest.mark.parametrize("switches", SWITCHES)
def test_every_switch_of_the_trunks_does_what_it_says(switches):
    model = pair_lm(Case("absolute"), **SWITCHES[switches])
    check_equation(model, some_pairs())
    check_steps(model, some_pairs((6, 3), (7, 7)), first=1)


@every_case
def test_nothing_later_and_no_other_source_is_seen(case):
    ids, sources = np.tile(random_ids(1, 7, seed=2), (8, 1)), np.tile(random_ids(1, 6), (8, 1))
    for last in range(6):
        ids[last, last + 1 :] = (ids[last, last + 1 :] + 1) % VOCABULARY
    sources[7, 3] = (sources[7, 3] + 1) % VOCABULARY
    found = logits_of(shared_lm(case), pair_inputs(sources, ids))
    for last in range(6):
        np.testing.assert_array_equal(found[last, : last + 1], found[6, : last + 1])
        assert (found[last, last + 1 :] != found[6, last + 1 :]).any(-1).all()
    assert (found[7] != found[6]).any(-1).all()


@every_case
def test_padding_changes_nothing(case):
    model, given = shared_lm(case), some_pairs()
    real, wanted = given["decoder_padding_mask"].astype(bool), logits_of(model, given)
    for side in SIDES:  # what stands in it, to the bit
        name, mask = f"{side}_token_ids", given[f"{side}_padding_mask"]
        other = {**given, name: np.where(mask, given[name], (given[name] + 5) % VOCABULARY)}
        assert (other[name] != given[name]).any()
        np.testing.assert_array_equal(logits_of(model, other)[real], wanted[real])
        unmasked = logits_of(model, {**given, f"{side}_padding_mask": np.ones_like(mask)})
        if side == "encoder":  # a target's padding stands behind its tokens, which see no later one
            assert (unmasked[1] != wanted[1]).any()
        else:
            np.testing.assert_array_equal(unmasked[real], wanted[real])
    sources, targets = random_ids(2, 9, 1), random_ids(2, 8, 2)  # and how much there is
    wanted = logits_of(model, pair_inputs(sources[:, :6], targets[:, :5]))
    near(logits_of(model, pair_inputs(sources, targets, [6, 6], [5, 5]))[:, :5], wanted)
