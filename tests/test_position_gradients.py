"""Every weight learns, but for those whose gradient is zero by mathematics: these are listed."""

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import (
    CASES,
    ENCODER_CASES,
    HEADS,
    KEY_DIM,
    VOCABULARY,
    Case,
    encoder,
    inputs,
)

from keras_tupe import positions

pytestmark = pytest.mark.usefixtures("floatx")  # float64

LENGTH = 101  # every bucket of T5's default 32 occurs from distance 91 on


def gradients(model, given):
    """Returns the gradient of a generic function of all outputs, by path of the weight.

    One step of plain gradient descent at rate 1 subtracts the gradient, on any backend.
    """
    rng = np.random.default_rng(5)
    loss = {
        name: lambda target, output: ops.sum(ops.cast(target, output.dtype) * output)
        for name in ("sequence_output", "pooled_output")
    }
    targets = {
        name: rng.normal(size=shape)
        for name, shape in (
            ("sequence_output", (*given["token_ids"].shape, model.hidden_dim)),
            ("pooled_output", (len(given["token_ids"]), model.hidden_dim)),
        )
    }
    model.compile(keras.optimizers.SGD(1.0), loss=loss, run_eagerly=True)
    before = {weight.path: ops.convert_to_numpy(weight) for weight in model.trainable_weights}
    model.train_on_batch(given, targets)
    return {
        weight.path: before[weight.path] - ops.convert_to_numpy(weight)
        for weight in model.trainable_weights
    }


def rows_without_gradient(case):
    """Returns the rows that have no gradient, as (path, row), and those of all weights."""
    model = encoder(case, num_layers=1, num_segments=2, max_sequence_length=LENGTH, scale=0.3)
    token_ids = np.random.default_rng(0).permutation(np.arange(2 * LENGTH) % VOCABULARY)
    given = inputs(token_ids.reshape(2, LENGTH), lengths=[LENGTH, LENGTH - 2])
    given["segment_ids"] = (np.arange(2 * LENGTH).reshape(2, LENGTH) % 2).astype("int32")
    found = gradients(model, given)
    largest = max(np.abs(gradient).max() for gradient in found.values())
    size = {
        (path, row): np.abs(values).max() / largest
        for path, gradient in found.items()
        for row, values in enumerate(gradient)
    }
    between = {key: value for key, value in size.items() if 1e-13 < value < 1e-9}
    assert between == {}, "neither zero nor clearly a gradient"
    return {key for key, value in size.items() if value <= 1e-13}, set(size)


FEW_BUCKETS = Case("t5", (("max_distance", 11), ("num_buckets", 8)))
OTHER_CLS = [case for case in CASES if [key for key, _ in case.options] == ["cls"]]
EDGES = [  # clipping distances just at the length
    Case("shaw", (("cls", "untied"), ("k", LENGTH - 1))),
    Case("shaw", (("cls", "untied"), ("k", LENGTH - 2))),
    Case("deberta", (("cls", "untied"), ("k", LENGTH - 1))),
    Case("deberta", (("cls", "untied"), ("k", LENGTH - 2))),
]


def test_the_weights_without_a_gradient_of_a_method_outside_the_package(linear_slope):
    check_dead_weights(Case(linear_slope))


@pytest.mark.parametrize("case", [*ENCODER_CASES, FEW_BUCKETS, *OTHER_CLS, *EDGES], ids=str)
def test_the_weights_without_a_gradient_are_exactly_those_listed(case):
    check_dead_weights(case)


def check_dead_weights(case):
    dead, rows = rows_without_gradient(case)
    listed = set()
    dims = positions.Dims(HEADS, KEY_DIM, LENGTH)
    for record in case.method.dead_weights(dims, case.resolved()):
        matching = {
            (path, row)
            for path, row in rows
            if path.endswith(record.path)
            and record.row in (None, row, row - 1 - max(r for p, r in rows if p == path))
        }
        assert matching, f"{record.path} is no weight of the encoder"
        assert record.reason
        listed |= matching
    assert sorted(dead - listed) == [], "dead, but not listed"
    assert sorted(listed - dead) == [], "listed as dead, but alive"
