"""Span extractors that start from the encoder of a preset, for rows longer than its own too."""

from keras_tupe import TupeBackbone, TupeSpanExtractor, extend_positions, positions


def can_extend(method, options):
    """Returns whether an encoder can be made to take rows beyond its `max_sequence_length`."""
    return not method.has_length_limit(options) or bool(
        method.absolute_tables or options.get("k", "") is None
    )


def span_extractor(backbone, length, how):
    """Returns a `TupeSpanExtractor` with a copy of an encoder, and how it was made longer.

    Rows that are longer than the encoder's tables need a longer encoder: a table with a row per
    position is extended; one with a row per distance stays as it is, and larger distances count
    as its largest one (Huang et al. 2020 clip so from the beginning).

    Returns `(model, note)`; the note is a sentence, empty if nothing was done.

    Args:
        backbone: a `TupeBackbone`.
        length: tokens of the longest row.
        how: as in `keras_tupe.extend_positions`.

    Raises:
        ValueError: if the encoder cannot be made longer.
    """
    limit, note = backbone.max_sequence_length, ""
    if backbone.has_length_limit and length > limit:
        if positions.get(backbone.position).absolute_tables:
            backbone = extend_positions(backbone, length, how)
            note = f"Position tables were made longer, from {limit} to {length} rows ({how})."
        elif backbone.position_options.get("k", "") is None:
            backbone = _clipped(backbone, length)
            note = f"Distances of {limit} tokens and more count as {limit - 1}."
        else:
            raise ValueError(
                "The tables of this positional method cannot be made longer. Choose shorter rows. "
                f"Received: position={backbone.position!r}, max_sequence_length={limit}, "
                f"length={length}"
            )
    return TupeSpanExtractor(backbone), note


def _clipped(backbone, length):
    """The same encoder with distances that end where its table does."""
    options = {**backbone.position_options, "k": backbone.max_sequence_length - 1}
    longer = {"position_options": options, "max_sequence_length": length}
    clipped = TupeBackbone.from_config({**backbone.get_config(), **longer})
    clipped.set_weights(backbone.get_weights())
    return clipped
