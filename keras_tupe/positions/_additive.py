"""The record of a method that adds one layer's bias of positions to the logits."""

from keras_tupe.positions._method import PositionMethod
from keras_tupe.positions._parts import (
    EITHER_CLS,
    additive_dead_weights,
    combined_bias,
    memory_unless_untied,
)


def additive_method(part, options=None, other_options=(), **record):
    """Returns the record of a method whose bias is one layer, with the option `cls`.

    Args:
        part: (dims, options) -> layer, hidden states -> position bias.
        options: options and their defaults; `cls` is `"tied"` if it is not among them.
        other_options: of these, as in the record.
        **record: the other fields of `PositionMethod`.

    Returns:
        A `PositionMethod`. By default heads can be removed, and its dead weights are those of
        attention with a bias.
    """

    def bias(dims, options):
        return combined_bias([part(dims, options)], dims, cls=options["cls"])

    options = dict(options or {})
    defaults = {
        "dead_weights": additive_dead_weights,
        "refused_memory": memory_unless_untied,
        "prunes_heads": True,
    }
    return PositionMethod(
        bias=bias,
        options={**options, "cls": options.get("cls", "tied")},
        other_options=(*EITHER_CLS, *other_options),
        **{**defaults, **record},
    )
