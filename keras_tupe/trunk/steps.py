"""A causal trunk in steps: what earlier tokens are to later ones is kept."""

import functools

import keras
import keras_hub
from keras import ops

from keras_tupe.layers._parts import starts


class Steps:
    """First tokens, and then one token after the other, with the keys and values of those before.

    The caches are a list with a pair per block, keys and values of all `length` positions, each
    `(num_heads, batch, length, key_dim)` in the compute dtype; zeros where no token was yet. With
    segments they are longer, and steps take one token each. Token i stands at position i in every
    row. Whatever a position method adds is that of a whole sequence of `length` tokens, or of
    memory and segment: it is made once, here, and each step takes its rows of it.

    It is made inside of the function that is compiled, since what it holds are its tensors.

    Args:
        trunk: a causal `Trunk` without segments of pairs, or that of a decoder, whose steps are
            then given what each block takes of the encoder.
        length: tokens of a whole sequence, an integer.
    """

    def __init__(self, trunk, length):
        self.trunk, self.length = trunk, length
        self.terms = trunk.position_terms(length=length)
        shared = self.terms["shared_positions"]
        self._of_layers = [block.attention.of_layer(shared) for block in trunk.blocks]

    def prefill(self, token_ids, given=None):
        """Returns the hidden states of the first tokens, `(batch, count, hidden_dim)`, and caches.

        Args:
            token_ids: integers `(batch, count)`, with a known count of at most `length`.
            given: for each layer a dictionary of what its block takes besides. Defaults to nothing.
        """
        caches = []

        def each(layer, block, x, terms):
            x, cache = block.prefill(x, **terms, **(given[layer] if given else {}))
            caches.append(block.attention.cache_of(cache, self.length))
            return x

        terms = self.trunk.position_terms(length=token_ids.shape[1])
        return self.trunk({"token_ids": token_ids}, each, terms), caches

    def step(self, token_ids, caches, index, given=None):
        """Returns the hidden states of the next tokens, `(batch, count, hidden_dim)`, and caches.

        Args:
            token_ids: integers `(batch, count)`, with a known count.
            caches: those of the tokens before; what they hold from `index` on is replaced.
            index: position of the first of the tokens, an integer or a scalar tensor.
            given: as of `prefill`.
        """
        index, new = ops.cast(index, "int32"), []

        def each(layer, block, x, terms):
            known = {"position_bias": terms["position_bias"]}
            known["layer_positions"] = self._of_layers[layer]
            known |= given[layer] if given else {}
            x, cache = block.step(x, caches[layer], index, **known)
            new.append(cache)
            return x

        return self.trunk({"token_ids": token_ids}, each, self.terms, start=index), new


def written_rows(model, steps, rows, stop_token_ids, sampler, given=None):
    """Returns rows with what a model writes after their beginnings, and which tokens they have.

    Args:
        model: a language model: `logits` of hidden states are those of the next token.
        steps: the `Steps` of its trunk.
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
    by_batch = _swapped if _changes_rows(sampler) else lambda caches: caches

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


def _swapped(caches):
    return keras.tree.map_structure(
        lambda x: x if len(x.shape) == 2 else ops.swapaxes(x, 0, 1), caches
    )


def _changes_rows(sampler):
    """Whether a sampler moves rows of caches, whose first axis must then be the batch."""
    own = type(sampler).__call__ is not keras_hub.samplers.Sampler.__call__
    return own and not getattr(sampler, "keeps_rows", False)


def _without_ends(token_ids, is_prompt, stop_token_ids):
    """Returns rows whose padding is no end of a text, for which a sampler would take GPT-2's."""
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
