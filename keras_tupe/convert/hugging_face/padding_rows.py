"""Position tables whose first rows stand for padding, as fairseq's models have them."""

import numpy as np

from keras_tupe.convert.bert.layout import ABSOLUTE_TABLE, SEGMENTS, WORDS


def check_rows(check, config, pad_id):
    """Returns the row of the first token, and notes a table that ends before it.

    Args:
        check: a `ConfigCheck`.
        config: dictionary with all entries, those that the file left out too.
        pad_id: id of the padding token, a number of the code or of the configuration.
    """
    if check.problems:
        return 0
    rows, first_row = config["max_position_embeddings"], pad_id + 1
    if rows <= first_row:
        check.problems.append(
            f"max_position_embeddings={rows} must be more than pad_token_id + 1 = {first_row}, "
            "the row of the first token"
        )
    return first_row


def rows_note(first_row):
    """Returns the sentence for the report."""
    return (
        f"rows 0 to {first_row - 1} of the position table, which stand for padding, are left out: "
        f"the first token has row {first_row}"
    )


def cut_rows(found, arguments, first_row):
    """Cuts the position table and adds a single segment to it, in place.

    Args:
        found: dictionary: plain name -> array.
        arguments: those of the `TupeBackbone`.
        first_row: row of the first token.

    Returns:
        What is left out: a dictionary from plain names to reasons.
    """
    table, segments = found.get(ABSOLUTE_TABLE), found.get(SEGMENTS)
    rows = arguments["max_sequence_length"] + first_row
    shape = (rows, arguments["hidden_dim"])
    if table is None or table.shape != shape:
        return {}  # to be named with all else that does not fit
    found[ABSOLUTE_TABLE] = table[first_row:]
    if arguments.get("num_segments") or segments is None or segments.shape != (1, shape[1]):
        return {}
    # rounded once, to the type of the model
    found[ABSOLUTE_TABLE] = found[ABSOLUTE_TABLE].astype("float64") + segments.astype("float64")
    return {SEGMENTS: "the only segment; it is added to every row of the position table"}


def add_rows(found, first_row):
    """Puts rows of zeros for padding before the position table, in place.

    Args:
        found: dictionary: name -> array.
        first_row: row of the first token.
    """
    table = found[ABSOLUTE_TABLE]
    padding = np.zeros((first_row, table.shape[1]), table.dtype)
    found[ABSOLUTE_TABLE] = np.concatenate([padding, table])


def add_segments(found, count=2):
    """Gives a model without segments some of zero vectors, which change nothing, in place.

    Args:
        found: dictionary: name -> array.
        count: number of segments. Defaults to 2.
    """
    width, kind = found[WORDS].shape[1], found[WORDS].dtype
    found.setdefault(SEGMENTS, np.zeros((count, width), kind))
