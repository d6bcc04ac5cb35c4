"""Position biases by their parts, so that no matrix of all pairs is made of long sequences.

The parts of a bias are a dictionary of tensors, of which each may be missing:

    query, key   `(heads, length, rank)`: the bias of i and j is query_i . key_j
    distances    `(heads, 2 length)`: plus distances[n - 1 + j - i]

What layers hand to each other has a `bias` beside them, `(1, heads, length, length)`, which holds
for short sequences and is empty for long ones.
"""

from keras import ops

from keras_tupe.layers.attention.block import Block, distance_values


def sum_of_parts(biases):
    """Returns the parts of a sum of biases.

    Equation:

        query_i . key_j + query'_i . key'_j = [query_i, query'_i] . [key_j, key'_j]

    Args:
        biases: list of dictionaries of parts.
    """
    found = {}
    for name in ("query", "key"):
        factors = [parts[name] for parts in biases if name in parts]
        if factors:
            found[name] = ops.concatenate(factors, axis=-1) if len(factors) > 1 else factors[0]
    distances = [parts["distances"] for parts in biases if "distances" in parts]
    if distances:
        found["distances"] = sum(distances[1:], distances[0])
    return found


def reset_parts(parts, theta, length):
    """Returns the parts of a bias with [CLS] freed: two channels more.

    Equation, for the bias B and `ClsReset` with theta_1 and theta_2; e is 1 at [CLS], else 0:

        reset(B)_ij = B_ij + e_i (theta_1 - B_0j) + (1 - e_i) (theta_2 - B_i0) e_j

    Args:
        parts: those of B.
        theta: `(2, heads)`.
        length: number of tokens, an integer or a scalar tensor.
    """
    dtype = theta.dtype
    heads = ops.shape(theta)[1]
    is_cls = ops.cast(ops.equal(ops.arange(length, dtype="int32"), 0), dtype)  # e
    is_cls = ops.broadcast_to(ops.expand_dims(is_cls, 0), (heads, length))
    other = 1 - is_cls
    row, column = (ops.expand_dims(x, 1) for x in ops.unstack(theta))
    factors = {}
    if "query" in parts:  # without [CLS], where the factors of B are zero from now on
        keep = ops.expand_dims(other, -1)
        factors = {name: [parts[name] * keep] for name in ("query", "key")}
    if "distances" in parts:
        row = row - ops.slice(parts["distances"], (0, length - 1), (heads, length))
        first = ops.slice(parts["distances"], (0, 0), (heads, length))
        column = column - ops.flip(first, axis=1)
    channels = {
        "query": (is_cls, other * column),
        "key": (ops.broadcast_to(row, (heads, length)), is_cls),
    }
    found = {
        name: ops.concatenate([*factors.get(name, ()), ops.stack(channels[name], axis=-1)], -1)
        for name in ("query", "key")
    }
    return {**found, **{name: parts[name] for name in parts if name == "distances"}}


def matrix_of_parts(parts, length):
    """Returns the bias itself, `(1, heads, length, length)`.

    Args:
        parts: dictionary of parts.
        length: number of tokens, an integer or a scalar tensor.
    """
    found = []
    if "query" in parts:
        found.append(ops.einsum("htr,hsr->hts", parts["query"], parts["key"]))
    if "distances" in parts:
        table = parts["distances"][:, : 2 * length - 1]
        found.append(distance_values(table, Block(0, length, 0, length))[:, 0])
    return ops.expand_dims(sum(found[1:], found[0]), 0)


def whole_bias(handed, length):
    """Returns the bias itself of what layers hand to each other.

    Args:
        handed: dictionary of parts and `bias`.
        length: as above.
    """
    if handed["bias"].shape[-1] != 0:
        return handed["bias"]
    return matrix_of_parts({name: x for name, x in handed.items() if name != "bias"}, length)
