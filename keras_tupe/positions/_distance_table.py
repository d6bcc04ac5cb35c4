"""The table of a method whose attention depends on a learned vector per distance."""

import keras

from keras_tupe import check
from keras_tupe.layers import RelativePositionTable
from keras_tupe.positions._method import PositionMethod
from keras_tupe.positions._parts import (
    EITHER_CLS,
    KEY_BIAS,
    DeadWeight,
    attention,
    boolean,
    is_untied,
    memory_unless_untied,
)

INITIALIZERS = ("normal", "ones", "zeros")
TABLE_MEANINGS = {
    "k": "Clips distances: from `k` tokens on all are one. Then sequences of any length work, and "
    "the table has 2k + 1 rows, or k + 1 where left and right are one. `None`: every distance up "
    "to `max_sequence_length` has a row.",
    "share_heads": "Whether all heads of a block share one table.",
    "share_layers": "Whether all blocks share one table.",
    "initializer": 'Initial values of the table: `"normal"`, of the deviation of the other '
    'weights, `"ones"`, with which a factor starts as attention without positions, or `"zeros"`.',
}


def distance_method(attention_class, initializer, width=None, signed=True, dead=(), **record):
    """Returns the record of a method on `AbstractDistanceAttention`.

    Args:
        attention_class: the layer.
        initializer: default of the option: `"normal"`, `"ones"` or `"zeros"`.
        width: width of the table, `None` for the size of a head.
        signed: whether left and right have rows of their own.
        dead: names among `key_bias` and `cls_row` whose gradient is zero by mathematics, since
            they add a constant to a row of the logits.
        **record: the other fields of `PositionMethod`.

    Returns:
        A `PositionMethod`.
    """

    def table(dims, options, name):
        return RelativePositionTable(
            _reach(dims, options),
            num_heads=1 if boolean(options, "share_heads") else dims.num_heads,
            width=width or dims.key_dim,
            signed=signed,
            clip=options["k"] is not None,
            untie_cls=is_untied(options["cls"]),
            initializer=_initializer(dims, options),
            dtype=dims.dtype,
            name=name,
        )

    def shared(dims, options):
        is_shared = boolean(options, "share_layers")
        return table(dims, options, "shared_positions") if is_shared else None

    def own_attention(dims, options):
        own = None if options["share_layers"] else table(dims, options, "position_table")
        return attention(attention_class, dims, position_table=own)

    return PositionMethod(
        options={
            "k": None,
            "share_heads": False,
            "share_layers": False,
            "initializer": initializer,
            "cls": "tied",
        },
        shared=shared,
        attention=own_attention,
        dead_weights=lambda dims, options: _dead_weights(dims, options, signed, dead),
        has_length_limit=lambda options: options["k"] is None,
        other_options=(
            *EITHER_CLS,
            {"k": 3},
            {"share_heads": True},
            {"share_layers": True},
            {"initializer": "zeros"},
        ),
        shift_invariant=True,
        refused_memory=memory_unless_untied,
        prunes_heads=True,
        option_meanings=TABLE_MEANINGS,
        **{**record, "where": {**_where(width, signed), **record.get("where", {})}},
    )


def _where(width, signed):
    """Returns the meaning of the symbol of the table, for the field `where`."""
    symbol = "a_{j-i}" if signed else "a_{|j-i|}"
    kind = "scalar" if width == 1 else "vector"
    sides = "" if signed else "; left and right are one"
    return {
        symbol: f"learned {kind} of the distance, one per head and block{sides}; with the option "
        r"`k`, of $\mathrm{clip}(j - i, k)$"
    }


def _reach(dims, options):
    """Returns the clipping distance."""
    largest = max(1, dims.max_sequence_length - 1)
    if options["k"] is None:
        return largest
    if not check.is_integer(options["k"]) or not 1 <= options["k"] <= largest:
        raise ValueError(
            "`k` is the distance from which on all distances are one, in tokens: an integer from 1 "
            f"to max_sequence_length - 1 = {largest}, or None for none. "
            f"Received: k={options['k']!r}"
        )
    return int(options["k"])


def _initializer(dims, options):
    check.choice("initializer", options["initializer"], INITIALIZERS)
    if options["initializer"] == "normal":
        return dims.initializer()
    return keras.initializers.get(options["initializer"])


def _dead_weights(dims, options, signed, dead):
    records = [KEY_BIAS] if "key_bias" in dead else []
    if is_untied(options["cls"]):
        if "cls_row" in dead:
            row = "it adds a constant to row 0 of the logits, which softmax ignores"
            records.append(DeadWeight("cls_embeddings", row, row=0))
        if options["k"] in (None, dims.max_sequence_length - 1):
            far = "its distance occurs only between [CLS] and the last token"
            rows = (0, -1) if signed else (-1,)
            records += [DeadWeight("distance_embeddings", far, row=row) for row in rows]
    return tuple(records)
