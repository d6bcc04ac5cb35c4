"""Dropout as a pure function of (seed, step, part of the batch)."""

from keras import ops

_DRAWS = 1024  # that one generator may make in a step
_MIX = -1640531535  # an odd number (2**32 over the golden ratio): parts get far-off seeds


def seeds_of(states, values, step, part):
    """Returns the states for one part of one step, to be used instead of the variables'.

    A Keras seed generator counts its draws, on every replica alike, so that all replicas draw
    the same mask, and a run that is resumed from a file draws others. Here its state is

        (seed + part * constant, step * 1024)    modulo 2**32

    with the seed it was made with: nothing needs to be saved, and the parts of a batch draw
    different masks wherever they are computed.

    Args:
        states: what `seed_generators` returned.
        values: their values, tensors.
        step: number of the step, int32 scalar.
        part: number of the part of the batch (replica or micro-batch), int32 scalar.

    Returns:
        List of pairs (variable, tensor), for `keras.StatelessScope`.
    """
    shift = ops.stack([part * _MIX, step * _DRAWS])
    pairs = []
    for state, value in zip(states, values, strict=True):
        seed = ops.stack([value[0], ops.zeros_like(value[0])])
        pairs.append((state, seed + ops.cast(shift, state.dtype)))
    return pairs
