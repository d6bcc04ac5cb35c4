"""Position biases by what they are made of, so that no matrix of long texts is made of them.

It is a dictionary with the names of `PositionBias.kinds`. What layers hand to each other has a
`bias` beside these, `(1, heads, length, length)`, which is empty for long texts.
"""

from keras import ops

from keras_tupe.layers.attention.block import Block, distance_values


def sum_of_parts(biases):
    """Returns the parts of a sum of biases.

    Equation:

        query_i . key_j + query'_i . key'_j = [query_i, query'_i] . [key_j, key'_j]
    """
    found = {}
    for name in ("query", "key", "distances"):
        some = [parts[name] for parts in biases if name in parts]
        if len(some) > 1 and name != "distances":
            found[name] = ops.concatenate(some, axis=-1)
        elif some:
            found[name] = sum(some[1:], some[0])
    return found


def reset_parts(parts, theta, length):
    """Returns the parts of a bias with [CLS] freed: two channels more.

    Equation, for the bias B and `ClsReset` with theta_1 and theta_2; e is 1 at [CLS], else 0:

        reset(B)_ij = B_ij + e_i (theta_1 - B_0j) + (1 - e_i) (theta_2 - B_i0) e_j
    """
    heads = ops.shape(theta)[1]
    is_cls = ops.cast(ops.equal(ops.arange(length, dtype="int32"), 0), theta.dtype)  # e
    is_cls = ops.broadcast_to(ops.expand_dims(is_cls, 0), (heads, length))
    other = 1 - is_cls
    row, column = (ops.expand_dims(x, 1) for x in ops.unstack(theta))
    if "distances" in parts:
        row = row - ops.slice(parts["distances"], (0, length - 1), (heads, length))
        first = ops.slice(parts["distances"], (0, 0), (heads, length))
        column = column - ops.flip(first, axis=1)
    found = {
        "query": ops.stack([is_cls, other * column], axis=-1),
        "key": ops.stack([ops.broadcast_to(row, (heads, length)), is_cls], axis=-1),
    }
    if "query" in parts:  # without [CLS], where the factors of B are zero from now on
        keep = ops.expand_dims(other, -1)
        found = {
            name: ops.concatenate([parts[name] * keep, x], axis=-1) for name, x in found.items()
        }
    return {**parts, **found}


def matrix_of_parts(parts, length):
    """Returns the bias itself, `(1, heads, length, length)`."""
    found = [parts["matrix"]] if "matrix" in parts else []
    if "query" in parts:
        found.append(ops.einsum("htr,hsr->hts", parts["query"], parts["key"]))
    if "distances" in parts:
        table = parts["distances"][:, : 2 * length - 1]
        found.append(distance_values(table, Block(0, length, 0, length))[:, 0])
    return ops.expand_dims(sum(found[1:], found[0]), 0)
