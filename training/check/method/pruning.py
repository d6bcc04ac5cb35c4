"""Heads that are removed: the rest answers as if what they give were zero."""

import numpy as np

from keras_tupe.models import prune_heads
from training.check.compare import in_float64, require
from training.check.method.cases import HEADS, encoder, inputs, outputs, random_ids

# of one layer alone, so that the others have more of what is shared; of all layers
_REMOVED = ({0: [0]}, {0: [0], 1: [0]})


def check_pruned_heads(case):
    """Compares an encoder of which heads were removed with the one whose heads have gates of zero.

    Args:
        case: a `Case`.

    Raises:
        BrokenPromiseError: if their answers differ.
    """
    model = encoder(case)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 2])
    for removed in _REMOVED:
        for layer, block in enumerate(model.blocks):
            gates = np.ones((HEADS, 1))
            gates[removed.get(layer, [])] = 0
            block.attention.head_gates = gates
        wanted = outputs(model, given)[0]
        for block in model.blocks:
            block.attention.head_gates = None
        found = outputs(prune_heads(model, removed), given)[0]
        difference = np.abs(found - wanted).max()
        require(
            difference <= in_float64(1e-12),
            f"Without the heads {removed} (layer: heads) the answers must be those with gates of "
            "zero on them: let `bias`, `shared` and `attention` heed `dims.heads` and "
            f"`dims.shared_heads`. They differ by {difference:.2g}.",
        )
