"""Every weight learns, but for those listed; gradients are those of numerical differentiation."""

import pytest
from position_cases import CASES, ENCODER_CASES, METHOD_NAMES, Case, by_kind

from keras_tupe import positions
from training.check_method import gradients

FEW_BUCKETS = Case("t5", (("max_distance", 11), ("num_buckets", 8)))
MORE_BUCKETS_THAN_DISTANCES = Case("t5", (("max_distance", 11),))
OTHER_CLS = [case for case in CASES if [key for key, _ in case.options] == ["cls"]]
EDGES = [  # clipping distances just at the length
    Case(name, (("cls", "untied"), ("k", gradients.LENGTH - less)))
    for name in ("shaw", "deberta")
    for less in (1, 2)
]
IN_ATTENTION = [name for name in METHOD_NAMES if gradients.acts_in_attention(positions.get(name))]


def listed(case):
    dims = positions.Dims(gradients.HEADS, gradients.KEY_DIM, gradients.LENGTH)
    return case.method.dead_weights(dims, case.resolved())


@pytest.mark.usefixtures("floatx")  # float64
@pytest.mark.parametrize(
    "case",
    by_kind(
        [*ENCODER_CASES, FEW_BUCKETS, MORE_BUCKETS_THAN_DISTANCES, *OTHER_CLS, *EDGES],
        also=listed,
    ),
)
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
