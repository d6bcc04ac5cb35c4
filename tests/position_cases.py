"""Every positional method of the package with its options, and what checks of them need."""

import functools

import pytest

from keras_tupe import positions
from keras_tupe.layers import CombinedPositionBias
from keras_tupe.positions.alibi import AlibiBias
from keras_tupe.positions.data_dependent_alibi import ForgetfulAttention
from keras_tupe.positions.diet_abs import LowRankPositionBias
from keras_tupe.positions.fire import FireBias
from keras_tupe.positions.free_table import FreeTableBias
from keras_tupe.positions.kerple import KerpleBias
from keras_tupe.positions.pope import PolarAngles, PolarAttention
from keras_tupe.positions.rope import RotaryAngles, RotaryAttention
from keras_tupe.positions.sandwich import SandwichBias
from training.check_method.cases import (
    BATCH,
    HEADS,
    KEY_DIM,
    MAX_LENGTH,
    VOCABULARY,
    WIDTH,
    Case,
    MethodLayers,
    cases_of,
    encoder,
    encoder_cases,
    inputs,
    method_layers,
    outputs,
    random_ids,
    scramble,
    shared_encoder,
)

__all__ = [
    "BATCH",
    "CASES",
    "ENCODER_CASES",
    "HEADS",
    "KEY_DIM",
    "MAX_LENGTH",
    "METHOD_NAMES",
    "VOCABULARY",
    "WIDTH",
    "Case",
    "MethodLayers",
    "by_kind",
    "cases_of",
    "encoder",
    "inputs",
    "mechanisms",
    "method_layers",
    "outputs",
    "random_ids",
    "scramble",
    "shared_encoder",
]

METHOD_NAMES = sorted(positions.METHODS)
CASES = [case for name in METHOD_NAMES for case in cases_of(name)]
ENCODER_CASES = encoder_cases(CASES)


# The method that encoders have by default; what no other one adds to is shown with it.
_FIRST = "tupe_r"


# Layers that hand on the same as another does: values by distance, factors of queries and keys, a
# matrix, or waves for products of queries and keys. What holds of the one holds of the other, but
# for the equation, which is compared for every method.
_LIKE = {
    (KerpleBias, False): (AlibiBias, False),
    (SandwichBias, False): (LowRankPositionBias, False),
    (FireBias, False): (FreeTableBias, False),
    (PolarAngles, False): (RotaryAngles, False),
    (PolarAttention, False): (RotaryAttention, False),
    (PolarAttention, True): (RotaryAttention, True),
    (ForgetfulAttention, True): (RotaryAttention, True),
}


def mechanisms(case):
    """Returns what a method is made of: the classes of its layers, and which of them free [CLS].

    Of layers that are like others, these.
    """
    return frozenset(_LIKE.get(part, part) for part in _layers(case))


def _is_like_others(case):
    return bool(_layers(case) & _LIKE.keys())


@functools.cache
def _layers(case):
    dims = positions.Dims(HEADS, KEY_DIM, max_sequence_length=1000)  # nothing is built
    method, options = case.method, case.resolved()
    factories = (method.embed, method.bias, method.shared, method.attention)
    made = [factory(dims, options) for factory in factories if factory]
    found = set()
    while made:
        layer = made.pop()
        if layer is not None:
            found.add((type(layer), getattr(layer, "untie_cls", False)))
            parts = layer.parts if isinstance(layer, CombinedPositionBias) else ()
            made += [*parts, getattr(layer, "position_table", None)]
    return frozenset(found)


def by_kind(cases, also=lambda case: None):
    """Returns parameters of a test: few cases that have every mechanism, the others marked `slow`.

    A method of new layers is among the few by itself. For promises that rest on the layers, and
    not on the numbers or the words of a record.

    Args:
        cases: list of `Case`.
        also: what else tells kinds apart: a function of a case. Each of its values is among the
            few for every mechanism that has it.
    """
    cases = list(dict.fromkeys(cases))
    kinds = {case: {(part, also(case)) for part in mechanisms(case)} for case in cases}
    left, few = set().union(*kinds.values()), set()
    while left:
        best = max(
            cases,
            key=lambda case: (
                len(kinds[case] & left),
                case.name == _FIRST,
                not _is_like_others(case),
            ),
        )
        few.add(best)
        left -= kinds[best]
    return [
        pytest.param(case, id=str(case), marks=[] if case in few else pytest.mark.slow)
        for case in cases
    ]
