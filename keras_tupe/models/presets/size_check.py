"""Check that a configuration is not of an encoder far larger than the weights beside it."""

import math

from keras_tupe.layers._checks import is_integer
from keras_tupe.trunk.config import least_weights, readable

_ROWS = 2**16  # costs little, and may be set where no table has that many rows


def check_sizes(config, shapes, where, slack=1):
    """Refuses the config of an encoder far larger than the weights that are there for it.

    Else Keras would make the encoder first, and find out afterwards.

    Args:
        config: dictionary of a `TupeBackbone`.
        shapes: iterable of the shapes of its weights.
        where: the preset, for the message.
        slack: how many times the weights that are there it may have, where a later check says
            more of a smaller difference.

    Raises:
        ValueError: if it is refused.
    """
    shapes = list(shapes)
    count = sum(math.prod(map(int, shape)) for shape in shapes)
    least = least_weights(config)
    if config.get("position") == "absolute":
        width = config.get("embedding_dim") or config.get("hidden_dim")
        rows = (config.get("max_sequence_length"), width)
        least += math.prod(rows) if all(map(is_integer, rows)) else 0
    if least > slack * count:
        raise ValueError(
            "The configuration and the weights must be of one encoder: by the configuration there "
            f"are at least {readable(least)} weights, in the files {readable(count)}. "
            f"Received: {where}"
        )
    most = max((int(size) for shape in shapes for size in shape), default=0)
    options = config.get("position_options")
    names = ("max_sequence_length", "memory_length", "segment_length")
    rows = {name: config.get(name) for name in names}
    rows |= options if isinstance(options, dict) else {}
    for name, value in rows.items():
        if is_integer(value) and value > max(most, _ROWS):
            raise ValueError(
                f"The configuration and the weights must be of one encoder: {name} is "
                f"{readable(value)} in the configuration, and no weight has more than "
                f"{readable(most)} rows. Received: {where}"
            )
