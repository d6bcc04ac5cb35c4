"""What every positional method promises beside its equation."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from position_cases import (
    CASES,
    ENCODER_CASES,
    MAX_LENGTH,
    METHOD_NAMES,
    Case,
    by_kind,
    encoder,
    inputs,
    outputs,
    random_ids,
)

from keras_tupe import positions
from training.check_method import encoder as whole
from training.check_method import order, padding, suite
from training.check_method.compare import BrokenPromiseError

METHODS = [Case(name) for name in METHOD_NAMES]
OF_LAYERS = by_kind(METHODS)
OF_ENCODERS = by_kind(ENCODER_CASES)

# What `check_method` finds most with, for every method of the package


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_every_method_keeps_its_promises(name):
    outcomes = [suite.run(check) for check in suite.checks(name, quick=True)]
    assert not [one for one in outcomes if one.result == suite.BROKEN]
    assert sum(one.result == suite.KEPT for one in outcomes) >= 6


# Padding


@pytest.mark.slow
@pytest.mark.parametrize("case", OF_ENCODERS)
@hypothesis.given(length=st.integers(1, MAX_LENGTH - 1), data=st.data(), seed=st.integers(0, 1000))
@hypothesis.settings(max_examples=2)
def test_more_padding_never_changes_real_tokens(case, length, data, seed):
    more = data.draw(st.integers(1, MAX_LENGTH - length), label="padding")
    padding.check_more_padding(case, length, more, seed)


# Words alone, a bias that is added, and what acts inside attention; masks are the same for all.
IN_FLOAT32 = ("none", "tupe_r", "qkr_4")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in IN_FLOAT32 else pytest.mark.slow)
        for name in METHOD_NAMES
    ],
)
def test_more_padding_changes_nothing_in_float32_either(name):
    padding.check_more_padding_in_float32(Case(name))


# Order

# The biases of relative methods, which others add to absolute positions.
OF_DISTANCE = {
    method.bias for method in positions.METHODS.values() if method.shift_invariant and method.bias
}


@pytest.mark.parametrize(
    "name", [name for name in METHOD_NAMES if positions.get(name).bias in OF_DISTANCE]
)
def test_relative_biases_depend_on_the_distance_alone(name):
    order.check_bias_of_distance(Case(name))


def test_the_bias_of_an_absolute_method_does_not():
    with pytest.raises(BrokenPromiseError, match="differs between pairs of one distance"):
        order.check_bias_of_distance(Case("tupe_r_tied_cls"))


CLS_CASES = [case for case in CASES if "cls" in case.method.options]


def of_cls(cases):
    return by_kind(cases, also=lambda case: case.resolved()["cls"])


@pytest.mark.parametrize("case", of_cls([case for case in CLS_CASES if case.method.bias]))
def test_untied_cls_has_one_value_in_its_row_and_one_in_its_column_at_every_length(case):
    order.check_cls_of_bias(case)


@pytest.mark.parametrize("case", of_cls([case for case in CLS_CASES if not case.method.embed]))
def test_positions_are_invisible_to_and_from_an_untied_cls_and_to_no_tied_one(case):
    order.check_cls_of_logits(case)


@pytest.mark.parametrize(
    "name", [name for name in METHOD_NAMES if "cls" not in positions.get(name).options]
)
def test_methods_without_the_option_cannot_untie_cls(name):
    with pytest.raises(ValueError, match="no option 'cls'"):
        encoder(Case(name, (("cls", "untied"),)))


def test_methods_with_a_position_term_of_their_own_can_untie_cls():
    assert len({case.name for case in CLS_CASES}) >= 20


@pytest.mark.parametrize("options", [(), (("cls", "untied"), ("k", 3))])
@pytest.mark.parametrize(
    "name",
    [name for name in METHOD_NAMES if positions.get(name).starts_as_none],
)
def test_some_methods_start_as_an_encoder_without_positions(name, options):
    own = tuple((key, value) for key, value in options if key in positions.get(name).options)
    order.check_start(Case(name, own))


# Work and length


# Without a table: that of `deberta` is clipped, and has another shape for another length.
NO_TABLE = [
    case
    for case in METHODS
    if not case.method.has_length_limit(case.resolved()) and case.name != "deberta"
]


@pytest.mark.parametrize("case", NO_TABLE)
def test_a_method_without_a_table_has_no_use_for_the_length_of_one(case):
    short, long = (encoder(case, max_sequence_length=n) for n in (MAX_LENGTH, 3 * MAX_LENGTH))
    given = inputs(random_ids(2, MAX_LENGTH))
    for one, other in zip(outputs(short, given), outputs(long, given), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case", OF_LAYERS)
def test_position_work_is_done_once_per_forward_pass(case):
    whole.check_work_is_done_once(case)


CLIPPED_CASES = [case for case in CASES if case.options == (("k", 3),)]


@pytest.mark.parametrize(
    "case",
    by_kind(
        [*METHODS, *CLIPPED_CASES],
        also=lambda case: case.method.has_length_limit(case.resolved()),
    ),
)
def test_a_table_bounds_the_length_and_nothing_else_does(case):
    whole.check_length_limit(case)


@pytest.mark.parametrize("case", CLIPPED_CASES, ids=str)
def test_a_clipped_table_has_no_limit(case):
    assert not case.method.has_length_limit(case.resolved())


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize("case", OF_ENCODERS)
def test_one_graph_serves_every_length(case, tensorflow):
    whole.check_one_graph(case)
