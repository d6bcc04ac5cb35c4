"""The arrays of a batch, whatever its inputs, labels and weights are called."""

import numpy as np


def arrays_of(batch):
    """Returns the arrays of `(inputs, labels, weights)` by `"inputs token_ids"`, `"labels"`, ..."""
    found = {}
    for part, value in zip(("inputs", "labels", "weights"), batch, strict=True):
        of_part = value if isinstance(value, dict) else {"": value}
        found |= {f"{part} {name}".strip(): np.asarray(array) for name, array in of_part.items()}
    return found


def joined(batches):
    """Returns the arrays of batches, one after the other."""
    parts = [arrays_of(batch) for batch in batches]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def assert_same(found, expected):
    """Checks that two dictionaries of arrays are the same to the bit."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name, strict=True)
