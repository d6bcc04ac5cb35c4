"""What an encoder asks of the attention layer that a position method made."""

from keras_tupe.layers.attention.segments import Segments


def check_attention(attention, dims):
    """Refuses an attention layer that is not the one that the encoder asked for.

    Args:
        attention: what a position method made.
        dims: the `Dims` that it was given.

    Raises:
        ValueError: if it has another attention pattern or memory, and would see what it must not;
            or, where heads were removed, other heads.
    """
    segments = getattr(attention, "segments", None)
    if segments != segments_of_dims(dims):
        raise ValueError(
            "The attention layer of a position method must have the memory of the encoder: make it "
            "with `keras_tupe.positions.attention`, or hand `memory_length` and `segment_length` "
            f"of `dims` on to it. Received: a layer with {segments}, expected "
            f"{segments_of_dims(dims)}"
        )
    heads, shared = (getattr(attention, name, None) for name in ("num_heads", "shared_heads"))
    if dims.heads is not None and (heads, shared) != (dims.num_heads, dims.shared_heads):
        raise ValueError(
            "The attention layer of a position method must have the heads of its layer: make it "
            "with `keras_tupe.positions.attention`, or hand `num_heads` and `shared_heads` of "
            f"`dims` on to it. Received: a layer with {heads} heads and shared_heads={shared}, "
            f"expected {dims.num_heads} and {dims.shared_heads}"
        )
    wanted = dims.attention_pattern, dict(dims.pattern_options), dims.layer_index
    pattern = getattr(attention, "attention_pattern", "full")
    options, index = (getattr(attention, x, None) for x in ("pattern_options", "layer_index"))
    received = pattern, options, index
    if pattern == "full" == dims.attention_pattern or received == wanted:
        return
    raise ValueError(
        "The attention layer of a position method must have the attention pattern of the encoder: "
        "make it with `keras_tupe.positions.attention`, or hand `attention_pattern`, "
        "`pattern_options` and `layer_index` of `dims` on to it. "
        f"Received: a layer with {received}, expected {wanted}"
    )


def segments_of_dims(dims):
    """Returns the `Segments` that the attention layers of an encoder must have, or `None`.

    Args:
        dims: a `Dims`.
    """
    if not dims.memory_length and dims.segment_length is None:
        return None
    return Segments(dims.memory_length, dims.segment_length or dims.memory_length)
