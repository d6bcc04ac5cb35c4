"""Check that a method sees of the order of tokens what its record says."""

import numpy as np
from keras import ops

from training.check.compare import in_float64, require, require_near
from training.check.method.cases import (
    MAX_LENGTH,
    Case,
    encoder,
    inputs,
    method_layers,
    outputs,
    random_ids,
)

_SHUFFLED = np.array([0, 3, 1, 6, 2, 5, 4])  # [CLS] stays


def bias_matrix(case, length):
    """Returns the position bias of a method `(heads, length, length)`."""
    method = method_layers(case, "float64")
    return ops.convert_to_numpy(method.bias(np.zeros((1, length, 10))))[0]


def check_bias_of_distance(case):
    """Checks that a bias depends on the distance alone, and not on the length of the sequence."""
    whole = bias_matrix(case, MAX_LENGTH)
    what = "The bias of a shift-invariant method differs between pairs of one distance"
    require_near(whole[:, 1:, 1:], whole[:, :-1, :-1], in_float64(1e-13), what)
    for length in (1, 2, 3, 7):
        part = whole[:, :length, :length]
        what = f"The bias of {length} tokens differs"  # but for the rounding of low-rank products
        require_near(bias_matrix(case, length), part, in_float64(1e-13), what)


def check_cls_of_bias(case):
    """Checks that an untied [CLS] has one value in its row and one in its column, a tied one more.

    At every length. For methods with a bias and the option `cls`.
    """
    rows, columns = [], []
    for length in (2, 3, 7, MAX_LENGTH):
        bias = bias_matrix(case, length)
        rows.extend(bias[:, 0].T)
        columns.extend(bias[:, 1:, 0].T)
    spread = max(np.ptp(rows, axis=0).max(), np.ptp(columns, axis=0).max())
    if case.resolved()["cls"] == "untied":
        require(
            spread < in_float64(1e-13),
            "The bias of an untied [CLS] must be one value in its row and one in its column. "
            f"Received: values that differ by {spread:.1e}.",
        )
        one = bias_matrix(case, 1)[:, 0, 0]
        require_near(
            one, rows[0], in_float64(1e-13), "The bias of [CLS] to itself alone differs", 1e-7
        )
        require(
            np.abs(rows[0] - columns[0]).min() > 1e-3,
            "theta_1, the row of [CLS], must not be theta_2, its column.",
        )
    else:
        require(spread > 1e-3, "The bias of a tied [CLS] must depend on the position.")
    rest = bias_matrix(case, MAX_LENGTH)[:, 1:, 1:]
    require(
        np.ptp(rest, axis=(1, 2)).min() > 1e-3, "The bias of words must depend on the positions."
    )


def check_cls_of_logits(case):
    """Checks that positions are invisible to and from an untied [CLS], and to no tied one.

    For methods with the option `cls` that add nothing to the embeddings.
    """
    method = method_layers(case, "float64")
    tokens = np.random.default_rng(0).normal(size=(1, 7, 10))
    straight, shuffled = (method.logits(x)[0] for x in (tokens, tokens[:, _SHUFFLED]))
    row = np.abs(shuffled[:, 0] - straight[:, 0, _SHUFFLED]).max()
    column = np.abs(shuffled[:, :, 0] - straight[:, _SHUFFLED, 0]).max()
    words = np.abs(shuffled - straight[:, _SHUFFLED][:, :, _SHUFFLED])[:, 1:, 1:].max()
    require(words > 1e-3, "Words must see positions.")
    if case.resolved()["cls"] == "untied":
        require(
            max(row, column) < in_float64(1e-12),
            "Positions must be invisible to and from an untied [CLS]. Received: logits that differ "
            f"by {max(row, column):.1e}.",
        )
    else:
        require(min(row, column) > 1e-3, "A tied [CLS] must see positions.")


def check_start(case):
    """Checks that new weights leave an encoder as it is without positions, if the record says so.

    For methods with `starts_as_none`.
    """
    model, plain = encoder(case, scale=None), encoder(Case("none"))
    values = {weight.path: weight for weight in model.weights}
    for weight in plain.weights:
        values[weight.path].assign(weight)
    given = inputs(random_ids(3, 11), lengths=[11, 7, 1])
    what = "The record says starts_as_none=True, and the output differs from that of 'none'"
    for got, wanted in zip(outputs(model, given), outputs(plain, given), strict=True):
        require_near(got, wanted, in_float64(1e-13), what)
