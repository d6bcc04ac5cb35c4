"""Attention from its terms: all rows at once, or in blocks, whichever is better for the length."""

import keras
from keras import ops

from keras_tupe.layers._exporting import conversion_format, is_saved, is_served
from keras_tupe.layers.attention.blocks import attend_in_blocks, flat, on_block
from keras_tupe.layers.attention.fused import attend_fused, fused_implementation
from keras_tupe.layers.attention.masks import key_mask, masked
from keras_tupe.layers.attention.pairs import last_rows, pair_logits
from keras_tupe.layers.attention.row_block import RowBlock, whole_sequence
from keras_tupe.layers.attention.weighted_values import (
    softmax,
    values_of_scores,
    weighted_values,
)
from keras_tupe.layers.attention.windows import attend_in_windows, window_terms

# Longest sequences of which all logits are made at once, and whose position bias is a matrix of all
# pairs, which all layers share: below it the blocks, which make them again in the backward pass,
# take more time, and a matrix without a batch is small beside the hidden states.
LONGEST_WHOLE = 512


def in_blocks(length):
    """Returns whether the logits of a sequence are made in blocks, with no matrix of all pairs.

    Args:
        length: number of tokens; `None` where it is not known when the graph is made.
    """
    if keras.backend.backend() not in ("tensorflow", "jax"):
        return False
    if length is None:
        return not is_saved()  # a file has one graph for all lengths
    return length > LONGEST_WHOLE and conversion_format() is None


def attend(terms, value, is_real=None, dropout=None, visible=None, of_globals=None, normalize=None):
    """Returns the sums of values, `(heads, batch, rows, key_dim)`, with a row for each query.

    Equation:

        logits = the terms, one on top of the other; those of padded keys far below
        out_i  = sum_j dropout(softmax(logits)_ij) v_j

    Args:
        terms: list of `Term`; the first needs no logits before it. Queries may be other tokens
            than keys if the only term is `Products`.
        value: `(heads, batch, length, key_dim)`.
        is_real: booleans `(1, batch, 1, length)`, which keys are tokens; `None` if all are.
        dropout: a `ScoreDropout`, or `None`.
        visible: a `Visible`, whose `Pattern` is among the terms, or `None` where all see all.
        of_globals: terms and values that global tokens see by, if they have their own.
        normalize: what makes scores of all logits of a row, in place of softmax; `None` for it.
    """
    mask = None if is_real is None else key_mask(is_real, terms[0].rows[0].dtype)
    if fused_implementation() is not None:
        return attend_fused(terms, value, mask, dropout, normalize)
    given, of_keys = terms, mask
    if is_served() and mask is not None and len(terms) == 1 and getattr(terms[0], "biases", None):
        given, of_keys = [terms[0].with_mask(mask)], None  # a bias is added in the product itself
    blocks = in_blocks(_longest(terms[0].rows[0].shape[-2], value.shape[2])) and normalize is None
    windows = blocks and window_terms(terms, visible) is not None
    if windows:
        out = attend_in_windows(terms, value, mask, dropout, visible)
    elif blocks:
        out = attend_in_blocks(given, value, of_keys, dropout)
    else:
        logits = masked(whole_logits(given, ops.shape(value)[2]), of_keys)
        out = _sums(logits, value, dropout, normalize)
    if visible is None or not visible.has_global_rows or not (windows or of_globals):
        return out
    of_first = _of_globals(
        *(of_globals or (terms, value)), mask, dropout, visible.num_global, normalize
    )
    heads, batch, length, dim = ops.shape(out)
    count = visible.num_global
    rest = ops.slice(out, (0, 0, count, 0), (heads, batch, length - count, dim))
    return ops.concatenate([of_first, rest], axis=2)


def _longest(*lengths):
    return None if None in lengths else max(lengths)


def _of_globals(terms, value, mask, dropout, count, normalize):
    """Returns the sums of values of the first tokens, which see all."""
    length = ops.shape(value)[2]
    logits = masked(pair_logits(terms, (0, count), (0, length), length), mask)
    return _sums(logits, value, dropout, normalize)


def _sums(logits, value, dropout, normalize):
    if normalize is None:
        return weighted_values(logits, value, dropout)
    return values_of_scores(normalize(logits), value, dropout)


def attend_last(terms, value, first, is_real=None, dropout=None, normalize=None):
    """Returns the sums of values of the last queries, `(heads, batch, length - first, key_dim)`.

    Args:
        terms, is_real, dropout, normalize: as above.
        value: `(heads, batch, length, key_dim)`, with a known length.
        first: the first of these queries, an integer.

    Raises:
        ValueError: inside of `fused_attention`, which has no such form.
    """
    if fused_implementation() is not None:
        raise ValueError(
            "Fused attention is not what this model computes: its segments attend to a memory. "
            "Leave out `fused_attention()`. Received: a layer with a memory"
        )
    mask = None if is_real is None else key_mask(is_real, terms[0].rows[0].dtype)
    terms = [last_rows(term.in_rows(), first) for term in terms]
    length = value.shape[2]
    if in_blocks(length) and normalize is None:
        return attend_in_blocks(terms, value, mask, dropout, first=first)
    block = RowBlock(first, length - first, length)
    logits = masked(on_block(terms, flat(terms), block), mask)
    return _sums(logits, value, dropout, normalize)


def scores(terms, length, is_real=None, normalize=None):
    """Returns the scores of all pairs, `(heads, batch, length, length)`, softmax of the logits.

    Args:
        terms, is_real, normalize: as above.
        length: number of tokens.
    """
    mask = None if is_real is None else key_mask(is_real, terms[0].rows[0].dtype)
    return (normalize or softmax)(masked(whole_logits(terms, length), mask))


def whole_logits(terms, length):
    """Returns all logits, `(heads, batch, length, length)`.

    Args:
        terms: as above.
        length: number of tokens, an integer or a scalar tensor.
    """
    terms = [term.in_rows() for term in terms]
    return on_block(terms, flat(terms), whole_sequence(length))
