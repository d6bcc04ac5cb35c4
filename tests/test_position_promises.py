"""What every positional method promises beside its equation."""

import pytest
from position_cases import CASES, ENCODER_CASES, METHOD_NAMES, Case, by_kind, cases_of

from keras_tupe import positions
from training.check.compare import BrokenPromiseError
from training.check.method import encoder as whole
from training.check.method import gradients, order, padding, precision, suite

METHODS = [Case(name) for name in METHOD_NAMES]
IN_ATTENTION = [name for name in METHOD_NAMES if gradients.acts_in_attention(positions.get(name))]


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_keeps_its_promises(name):
    """The record, equation, padding, order, shift, half precision, the future, segments."""
    outcomes = [check.outcome() for check in suite.checks(name, quick=True)]
    assert not [one for one in outcomes if one.result == "BROKEN"]
    assert sum(one.result == "kept" for one in outcomes) >= 6


# Padding


# Words alone, a bias that is added, and what acts inside attention; masks are the same for all.
@pytest.mark.parametrize("name", ["none", "tupe_r", "qkr_4"])
def test_more_padding_changes_nothing_in_float32_either(name):
    padding.check_more_padding_in_float32(Case(name))


# Order

CLS_CASES = [case for case in CASES if "cls" in case.method.options]


def of_cls(cases):
    return by_kind(cases, also=lambda case: case.resolved()["cls"])


def test_relative_biases_depend_on_the_distance_alone():
    """Those of relative methods, which others add to absolute positions."""
    of_distance = {method.bias for method in positions.METHODS.values() if method.shift_invariant}
    for case in METHODS:
        if case.method.bias and case.method.bias in of_distance:
            order.check_bias_of_distance(case)
    with pytest.raises(BrokenPromiseError, match="differs between pairs of one distance"):
        order.check_bias_of_distance(Case("tupe_r_tied_cls"))


@pytest.mark.parametrize("case", of_cls([case for case in CLS_CASES if case.method.bias]))
def test_untied_cls_has_one_value_in_its_row_and_one_in_its_column_at_every_length(case):
    order.check_cls_of_bias(case)


@pytest.mark.parametrize("case", of_cls([case for case in CLS_CASES if not case.method.embed]))
def test_positions_are_invisible_to_and_from_an_untied_cls_and_to_no_tied_one(case):
    order.check_cls_of_logits(case)


def test_methods_with_a_position_term_of_their_own_can_untie_cls_and_no_other():
    assert len({case.name for case in CLS_CASES}) >= 20
    for name in set(METHOD_NAMES) - {case.name for case in CLS_CASES}:
        with pytest.raises(ValueError, match="no option 'cls'"):
            positions.get(name).resolve({"cls": "untied"})


@pytest.mark.parametrize("options", [(), (("cls", "untied"), ("k", 3))])
@pytest.mark.parametrize("name", [x for x in METHOD_NAMES if positions.get(x).starts_as_none])
def test_some_methods_start_as_an_encoder_without_positions(name, options):
    own = tuple((key, value) for key, value in options if key in positions.get(name).options)
    order.check_start(Case(name, own))


# Precision


@pytest.mark.parametrize("case", by_kind(METHODS))
def test_position_terms_logits_and_scores_are_in_at_least_float32_and_not_rounded(case):
    # float16 rounds as bfloat16 does and overflows besides
    precision.check_dtypes(case, "mixed_float16")
    precision.check_half_precision(case, "mixed_float16")


# Gradients

FEW_BUCKETS = (("max_distance", 11), ("num_buckets", 8))
EDGES = [  # fewer and more buckets than distances; clipping distances just at the length
    *(Case("t5", options) for options in (FEW_BUCKETS, FEW_BUCKETS[:1])),
    *(
        Case(name, (("cls", "untied"), ("k", gradients.LENGTH - less)))
        for name in ("shaw", "deberta")
        for less in (1, 2)
    ),
]
OTHER_CLS = [case for case in CASES if [key for key, _ in case.options] == ["cls"]]


def listed(case):
    dims = positions.Dims(gradients.HEADS, gradients.KEY_DIM, gradients.LENGTH)
    return case.method.dead_weights(dims, case.resolved())


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize("case", by_kind([*ENCODER_CASES, *EDGES, *OTHER_CLS], also=listed))
def test_the_weights_without_a_gradient_are_exactly_those_listed(case):
    gradients.check_dead_weights(case)


# Unclipped; and longer than a block of rows, with a clip where there is one.
@pytest.mark.parametrize("length", [gradients.SHORT, gradients.LONG])
@pytest.mark.parametrize("case", by_kind(map(Case, IN_ATTENTION)))
def test_gradients_equal_numerical_ones(case, length, tensorflow):
    gradients.check_derivatives(gradients.derivative_case(case.name, length), length)


def test_methods_inside_attention_are_found():
    assert {"shaw", "rope", "deberta"} <= set(IN_ATTENTION)
    assert not {"none", "absolute", "tupe_r"} & set(IN_ATTENTION)


# Work and length


def has_limit(case):
    return case.method.has_length_limit(case.resolved())


@pytest.mark.parametrize("case", by_kind(METHODS))
def test_position_work_is_done_once_per_forward_pass(case):
    whole.check_work_is_done_once(case)


CLIPPED = [case for name in METHOD_NAMES for case in cases_of(name) if case.options == (("k", 3),)]


@pytest.mark.parametrize("case", by_kind([*METHODS, *CLIPPED], also=has_limit))
def test_a_table_bounds_the_length_and_nothing_else_does(case):
    whole.check_length_limit(case)
    assert not has_limit(case) or case not in CLIPPED


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize("case", by_kind(ENCODER_CASES))
def test_one_graph_serves_every_length(case, tensorflow):
    whole.check_one_graph(case)
