"""Every positional method of the package with its options, and what checks of them need."""

from keras_tupe import positions
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
    "cases_of",
    "encoder",
    "inputs",
    "method_layers",
    "outputs",
    "random_ids",
    "scramble",
    "shared_encoder",
]

METHOD_NAMES = sorted(positions.METHODS)
CASES = [case for name in METHOD_NAMES for case in cases_of(name)]
ENCODER_CASES = encoder_cases(CASES)
