"""What every positional method promises, its equation first: the checks of `keras-tupe check`.

The few promises that find most are checked of every method, all others of few cases that have
every mechanism; `-m slow` runs all.
"""

import pytest
from position_cases import (
    CASES,
    METHOD_NAMES,
    Case,
    by_kind,
    cases_of,
    few_of,
    mechanisms,
)

from keras_tupe import positions
from training.check.method import encoder, equation, gradients, suite
from training.check.method.cases import PROMISES
from training.check.promise import BROKEN, KEPT, BrokenPromiseError, Check

METHODS = [Case(name) for name in METHOD_NAMES]
IN_ATTENTION = [name for name in METHOD_NAMES if gradients.acts_in_attention(positions.get(name))]
# Each method as it is, with each option alone, and with all other options at once.
FIRST_AND_LAST = [case for name in METHOD_NAMES for case in (cases_of(name)[0], cases_of(name)[-1])]
ONE_BY_ONE = [*FIRST_AND_LAST, *(case for case in CASES if len(case.options) == 1)]
FEW_BUCKETS = (("max_distance", 11), ("num_buckets", 8))
EDGES = [  # fewer and more buckets than distances; clipping distances just at the length
    *(Case("t5", options) for options in (FEW_BUCKETS, FEW_BUCKETS[:1])),
    *(
        Case(name, (("cls", "untied"), ("k", gradients.LENGTH - less)))
        for name in ("shaw", "deberta")
        for less in (1, 2)
    ),
]


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_keeps_its_main_promises(name):
    outcomes = [check.outcome() for check in suite.checks(name, quick=True)]
    assert not [one for one in outcomes if one.result == BROKEN]
    assert sum(one.result == KEPT for one in outcomes) >= 6


def of_cls(case):
    return case.resolved().get("cls")


def listed(case):
    dims = positions.Dims(gradients.HEADS, gradients.KEY_DIM, gradients.LENGTH)
    return case.method.dead_weights(dims, case.resolved())


# Promise -> what tells kinds of cases apart beside their mechanisms, and the cases that can be few.
KINDS = {
    "equation in float64, 1e-12": (None, ONE_BY_ONE),
    "equation with padding": (None, ONE_BY_ONE),
    "equation at 139 tokens": (lambda case: case.options, None),
    "oracle: NumPy alone": (None, FIRST_AND_LAST),  # an oracle's branches are those of its options
    "[CLS] in the bias": (of_cls, None),
    "[CLS] in the logits": (of_cls, None),
    "length limit": (lambda case: case.method.has_length_limit(case.resolved()), None),
    "weights without a gradient": (listed, None),
}
# Of few methods in tests of their own: models, patterns, files, exports.
ELSEWHERE = {
    *("attention patterns", "causal: the future is not seen", "training steps", "SavedModel"),
    *("config of an encoder", ".keras and weights files", "preset", "functions of the record"),
    *("oracle: the same each time", "configs make it again", "the same seed, the same encoder"),
    *("unknown options are refused", "logits under mixed_bfloat16", "logits under float16"),
    *("logits under float64", "nothing rounded, mixed_bfloat16"),  # float16 overflows besides
}


def swept():
    """Returns parameters: a check of one case of each promise."""
    found = []
    for words, check, cases, where, quick, facts in PROMISES:
        every = [case for name in METHOD_NAMES for case in cases(name) if where(case)]
        every += EDGES if words == "weights without a gradient" else []
        every = [case for case in dict.fromkeys(every) if not quick or case not in quick(case.name)]
        also, few = KINDS.get(words, (None, None))
        few = [] if words in ELSEWHERE else few or few_of(every, also or (lambda case: None))
        for case in every:
            marks = [] if case in few else pytest.mark.slow
            one = Check(words, check, (case,), **facts)
            found.append(pytest.param(one, id=f"{words}-{case}", marks=marks))
    return found


@pytest.mark.parametrize("check", swept())
def test_a_promise_is_kept(check):
    found = check.outcome()
    assert found.result != BROKEN, found.reason


def test_names_of_promises_are_known():
    assert {*KINDS, *ELSEWHERE} <= {words for words, *_ in PROMISES}


@pytest.mark.parametrize("case", by_kind(METHODS))
def test_padding_changes_nothing_of_the_equation_in_float32(case):
    equation.check_parity(case, "float32", padding=1, lengths=(7,))


@pytest.mark.parametrize("case", by_kind(map(Case, IN_ATTENTION)))
def test_gradients_of_rows_longer_than_a_block_equal_numerical_ones(case, tensorflow):
    gradients.check_derivatives(
        gradients.derivative_case(case.name, gradients.LONG), gradients.LONG
    )


def test_relative_biases_depend_on_the_distance_alone():
    """Those of relative methods, which others add to absolute positions."""
    of_distance = {method.bias for method in positions.METHODS.values() if method.shift_invariant}
    for case in METHODS:
        if case.method.bias and case.method.bias in of_distance:
            encoder.check_bias_of_distance(case)
    with pytest.raises(BrokenPromiseError, match="differs between pairs of one distance"):
        encoder.check_bias_of_distance(Case("tupe_r_tied_cls"))


def test_methods_with_a_position_term_of_their_own_can_untie_cls_and_no_other():
    with_cls = {name for name in METHOD_NAMES if "cls" in positions.get(name).options}
    assert len(with_cls) >= 20
    for name in set(METHOD_NAMES) - with_cls:
        with pytest.raises(ValueError, match="no option 'cls'"):
            positions.get(name).resolve({"cls": "untied"})


def test_clipped_distances_bound_no_length():
    clipped = [case for case in CASES if case.options == (("k", 3),)]
    assert clipped
    assert not any(case.method.has_length_limit(case.resolved()) for case in clipped)


def test_methods_inside_attention_are_found():
    assert {"shaw", "rope", "deberta"} <= set(IN_ATTENTION)
    assert not {"none", "absolute", "tupe_r"} & set(IN_ATTENTION)


def test_every_mechanism_is_among_the_few_cases_that_are_not_slow():
    for cases in (METHODS, CASES):
        few = few_of(cases)
        assert set().union(*map(mechanisms, few)) == set().union(*map(mechanisms, cases))
        assert 15 <= len(few) < len(cases)
    assert {"shaw", "shaw-untied", "rope", "rope-untied"} <= {*map(str, few_of(CASES, of_cls))}
