"""Which keys the queries of a block see."""

import numpy as np

from keras_tupe import attention_patterns
from keras_tupe.analysis._checks import check_whole_rows


def seen_keys(backbone, length, layer=0):
    """Returns which keys each query of a block sees, by the attention pattern of an encoder.

    Args:
        backbone: a `TupeBackbone`.
        length: number of tokens, [CLS] included.
        layer: number of the block, from 0. Defaults to 0.

    Returns:
        Booleans `(length, length)`, queries by keys.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, attention_pattern="causal")
        >>> seen_keys(backbone, 3).astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
    """
    check_whole_rows(backbone)
    pattern = attention_patterns.get(backbone.attention_pattern)
    options = pattern.resolve(backbone.pattern_options)
    tokens = range(length)
    return np.array(
        [[bool(pattern.allowed(i, j, length, layer, options)) for j in tokens] for i in tokens]
    )
