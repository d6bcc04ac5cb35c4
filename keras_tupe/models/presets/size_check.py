"""Refuses an encoder that cannot be, before memory is taken for it."""

import math
import os

from keras_tupe.layers._checks import is_integer

_ROWS = 2**16  # costs little, and may be set where no table has that many rows


def least_weight_count(sizes):
    """Returns how many weights the trunk of a `TupeBackbone` has at least, positions left out.

    Args:
        sizes: dictionary of the arguments of a `TupeBackbone`; what is not a positive integer
            counts as 0, since the constructor refuses it.
    """
    names = ("vocabulary_size", "num_layers", "hidden_dim", "intermediate_dim", "num_segments")
    vocabulary, layers, hidden, intermediate, segments, width, groups = (
        max(0, int(sizes[name])) if is_integer(sizes.get(name)) else 0
        for name in (*names, "embedding_dim", "num_groups")
    )
    embeddings = (vocabulary + segments) * (width or hidden) + width * hidden
    blocks = (groups or layers) * 2 * hidden * intermediate
    return embeddings + blocks + int((groups or layers) * 3 * hidden * hidden * _kept_share(sizes))


def _kept_share(sizes):
    """Returns the share of heads that are left, at least; 1 where it cannot be told."""
    kept, heads = sizes.get("kept_heads"), sizes.get("num_heads")
    if not isinstance(kept, list | tuple) or not is_integer(heads) or heads < 1:
        return 1
    counts = [len(layer) for layer in kept if isinstance(layer, list | tuple)]
    return min(1, min(counts, default=heads) / heads)


def check_memory(sizes, rows):
    """Refuses sizes whose weights would take more memory than the machine has.

    Args:
        sizes: dictionary of the arguments of a `TupeBackbone`.
        rows: dictionary of what else may be the number of rows of a table, each row at least one
            weight.

    Raises:
        ValueError: if they would, in float32.
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        return
    count = max([least_weight_count(sizes), *filter(is_integer, rows.values())])
    if 4 * count > memory:
        given = {name: value for name, value in {**sizes, **rows}.items() if is_integer(value)}
        raise ValueError(
            f"The weights of this encoder would take more than this machine's "
            f"{memory / 2**30:.1f} GiB of memory: there are at least {_readable(count)} of them. "
            "Choose smaller sizes. "
            f"Received: {', '.join(f'{name}={_readable(n)}' for name, n in given.items())}"
        )


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
    least = least_weight_count(config)
    if config.get("position") == "absolute":
        width = config.get("embedding_dim") or config.get("hidden_dim")
        rows = (config.get("max_sequence_length"), width)
        least += math.prod(rows) if all(map(is_integer, rows)) else 0
    if least > slack * count:
        raise ValueError(
            "The configuration and the weights must be of one encoder: by the configuration there "
            f"are at least {_readable(least)} weights, in the files {_readable(count)}. "
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
                f"{_readable(value)} in the configuration, and no weight has more than "
                f"{_readable(most)} rows. Received: {where}"
            )


def _readable(number):
    return f"{number:,}" if abs(number) < 10**18 else "more than 10**18"
