"""Checks of an encoder's attention pattern."""

from keras_tupe import attention_patterns, positions
from keras_tupe.layers.attention.segments import segments_of


def check_pattern(name, options, position, max_sequence_length, num_layers, num_groups=None):
    """Returns the resolved options of a pattern.

    Args:
        name: name of the pattern.
        options: its options, a dictionary or `None`.
        position: name of the position method.
        max_sequence_length: rows of position tables.
        num_layers: number of layers.
        num_groups: number of blocks that they share, or `None`.

    Raises:
        ValueError: if the pattern or an option is not known or impossible, the position method
            is not defined for the pattern, or layers that share a block see differently.
    """
    pattern = attention_patterns.get(name)
    options = pattern.resolve(options)
    seen = [pattern.visible(layer, options) for layer in range(num_layers)]  # refuses values
    positions.get(position).check_pattern(position, name)
    most = max((visible.num_global for visible in seen if visible), default=0)
    if most > max_sequence_length:
        raise ValueError(
            "There must not be more global tokens than a sequence has tokens, here "
            f"max_sequence_length={max_sequence_length}. Received: num_global={most}"
        )
    size = num_layers // (num_groups or num_layers)
    for first in range(0, num_layers, size):
        if any(visible != seen[first] for visible in seen[first : first + size]):
            raise ValueError(
                f"Layers that share a block must see the same tokens, and the pattern {name!r} "
                "differs between them. Choose other groups or options. Received: "
                f"num_groups={num_groups}, num_layers={num_layers}, pattern_options={options}"
            )
    return options


def check_segments(memory_length, segment_length, dims, position, options):
    """Refuses a memory that the pattern or the position method is not defined for.

    Args:
        memory_length: tokens of the memory before each segment, 0 for none.
        segment_length: tokens of a segment, or `None`.
        dims: the `Dims` of the model, without its memory.
        position: name of the position method.
        options: its resolved options.

    Raises:
        ValueError: if it is refused, or position tables are shorter than memory and segment.
    """
    pattern = attention_patterns.get(dims.attention_pattern)
    visible = pattern.visible(0, pattern.resolve(dims.pattern_options))
    segments = segments_of(memory_length, segment_length, visible)
    if segments is None:
        return
    method = positions.get(position)
    method.check_memory(position, options)
    if method.has_length_limit(options) and segments.whole > dims.max_sequence_length:
        raise ValueError(
            f"The position tables of {position!r} need a row for each token of memory and segment: "
            f"make max_sequence_length at least memory_length + segment_length = {segments.whole}. "
            f"Received: max_sequence_length={dims.max_sequence_length}"
        )


def check_length(shape, options):
    """Refuses sequences that have fewer tokens than there are global ones.

    Args:
        shape: `(batch, length)`, of which each may be unknown.
        options: resolved options of the pattern.

    Raises:
        ValueError: if they are too short.
    """
    count, length = options.get("num_global", 0), shape[1]
    if length is not None and isinstance(count, int) and length < count:
        raise ValueError(
            f"Sequences must have at least as many tokens as there are global ones, num_global="
            f"{count}. Pad them. Received: a length of {length}"
        )


def is_causal(name, options, num_layers):
    """Returns whether no token sees a later one, in any layer.

    Args:
        name: name of the pattern.
        options: its resolved options.
        num_layers: number of blocks.
    """
    pattern = attention_patterns.get(name)
    seen = [pattern.visible(layer, options) for layer in range(num_layers)]
    return all(visible is not None and visible.is_causal for visible in seen)
