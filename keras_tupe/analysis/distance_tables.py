"""The tables of an encoder that are indexed by distance."""

import dataclasses

import numpy as np
from keras import ops

from keras_tupe.layers import RelativePositionTable


@dataclasses.dataclass(frozen=True)
class DistanceTable:
    """The rows that a method has learned for the distances from -k to k.

    Attributes:
        values: array `(heads or 1, 2k + 1, width)`; row r belongs to distance r - k, key minus
            query. One head: the table is shared by all heads. Width 1: a scalar per
            distance.
        cls: array `(2, heads or 1, width)`: what the row and the column of an untied [CLS]
            have instead of a distance; `None` if [CLS] is tied.
    """

    values: np.ndarray
    cls: np.ndarray | None = None


def distance_tables(backbone):
    """Returns the tables of the method that are indexed by distance, by the name of their owner.

    Found is every `RelativePositionTable` that an attention layer has as `position_table`, and
    every one that the blocks share. Biases are no such tables: see `position_logits`.

    Args:
        backbone: a `TupeBackbone`.

    Returns:
        Dictionary of `DistanceTable`, by "block_0", "block_1", ... or "shared_positions"; empty if
        the method has none.

    Example:
        >>> distance_tables(keras_tupe.TupeBackbone(100, 1, 2, 16, 32, position="tupe_a"))
        {}
    """
    found = {
        block.name: getattr(block.attention, "position_table", None) for block in backbone.blocks
    }
    found |= {layer.name: layer for layer in backbone.layers if layer.name not in found}
    return {
        name: _read(layer)
        for name, layer in found.items()
        if isinstance(layer, RelativePositionTable)
    }


def _read(layer):
    tensors = layer(ops.zeros((1, 1, 1)))  # of any sequence: the rows do not depend on it
    tensors = {name: ops.convert_to_numpy(value) for name, value in tensors.items()}
    return DistanceTable(tensors["distances"].swapaxes(0, 1), tensors.get("cls"))
