"""Rows of tokens that a sampler completes, with the keys and values of earlier tokens kept."""

import functools

import keras
import keras_hub
from keras import ops

from keras_tupe.layers._parts import starts


def written_rows(model, steps, rows, stop_token_ids, sampler, given=None):
    """Returns rows with what a model writes after their beginnings, and which tokens they have.

    Args:
        model: a language model: `logits` of hidden states are those of the next token.
        steps: a `CachedBackbone`.
        rows: `token_ids` int32 `(batch, length)` of at most as many columns as there are steps,
            booleans of the same shape that say where a prompt stands, and the first columns of
            `token_ids`, with a known count, at least as many as the shortest prompt has tokens.
        stop_token_ids: list of ids with which a text ends, or `None`.
        sampler: a `keras_hub.samplers.Sampler`.
        given: for each layer a dictionary of what the steps take besides, of tensors whose second
            axis is the batch, and of `(batch, ...)` where they have two axes. Defaults to nothing.

    Returns:
        `token_ids` and `padding_mask`, `(batch, length)`, 1 = token of a text.
    """
    token_ids, is_prompt, first = rows
    hidden_states, caches = steps.prefill(first, given)
    sides = ((0, 0), (0, steps.length - first.shape[1]), (0, 0))
    by_batch = _swapped if _changes_rows(sampler) else _same

    def next(prompt, cache, index):
        batch = ops.shape(prompt)[0]
        last = ops.slice(prompt, starts(0, index - 1), (batch, 1))
        caches, given = by_batch(cache)
        hidden_states, caches = steps.step(last, caches, index - 1, given)
        hidden_states = hidden_states[:, 0]
        return model.logits(hidden_states), hidden_states, by_batch((caches, given))

    token_ids = sampler(
        next=next,
        prompt=_without_ends(token_ids, is_prompt, stop_token_ids),
        cache=by_batch((caches, given or [{} for _ in caches])),
        index=ops.min(ops.sum(ops.cast(is_prompt, "int32"), axis=-1)),
        mask=is_prompt,
        stop_token_ids=stop_token_ids,
        hidden_states=ops.pad(hidden_states, sides),
        model=model,
    )
    return token_ids, _kept(token_ids, is_prompt, stop_token_ids)


def _same(caches):
    return caches


def _swapped(caches):
    def swapped(x):
        return x if len(x.shape) == 2 else ops.swapaxes(x, 0, 1)

    return keras.tree.map_structure(swapped, caches)


def _changes_rows(sampler):
    """Whether a sampler moves rows of caches, whose first axis must then be the batch."""
    own = type(sampler).__call__ is not keras_hub.samplers.Sampler.__call__
    return own and not getattr(sampler, "keeps_rows", False)


def _without_ends(token_ids, is_prompt, stop_token_ids):
    """Returns rows whose padding is none of the tokens with which a text ends.

    GPT-2 pads with its end token, and a sampler would take that for the end of the text.
    """
    if stop_token_ids is None:
        return token_ids
    other = min(set(range(len(stop_token_ids) + 1)) - set(map(int, stop_token_ids)))
    return ops.where(is_prompt, token_ids, other)


def _kept(token_ids, is_prompt, stop_token_ids):
    """Returns which tokens belong to a text: all up to the first new one with which it ends."""
    if stop_token_ids is None:
        return ops.ones_like(is_prompt)
    is_end = functools.reduce(ops.logical_or, [ops.equal(token_ids, x) for x in stop_token_ids])
    is_end = ops.cast(ops.logical_and(is_end, ops.logical_not(is_prompt)), "int32")
    return ops.equal(ops.cumsum(is_end, axis=-1) - is_end, 0)
