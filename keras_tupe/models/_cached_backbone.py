"""The encoder for one token after the other, with the keys and values of those before."""

import inspect

from keras import ops

from keras_tupe.layers import CombinedPositionBias
from keras_tupe.layers._parts import starts


class CachedBackbone:
    """A causal `TupeBackbone` in steps: what earlier tokens are to later ones is kept.

    The caches are a list with a pair per block, keys and values of all `length` positions, each
    `(num_heads, batch, length, key_dim)` in the compute dtype; zeros where no token was yet. Token
    i stands at position i in every row of a batch. Whatever a position method adds is that of a
    whole sequence of `length` tokens: biases and shared position tensors are made once, here, and
    each step takes its rows of them.

    It is made inside of the function that is compiled, since what it holds are its tensors.

    Args:
        backbone: a `TupeBackbone` whose attention pattern is causal, without segments.
        length: tokens of a whole sequence, an integer.
    """

    def __init__(self, backbone, length):
        self._layers = {layer.name: layer for layer in backbone.layers}
        self._blocks = backbone.blocks
        self._hidden_dim, self._dtype = backbone.hidden_dim, backbone.compute_dtype
        self.length = length
        bias, shared = self._position_terms(length)
        self._terms = [
            (bias, block.attention.of_layer(shared) if shared is not None else None)
            for block in self._blocks
        ]

    def prefill(self, token_ids):
        """Returns the hidden states of the first tokens, `(batch, count, hidden_dim)`, and caches.

        Args:
            token_ids: integers `(batch, count)`, with a known count of at most `length`.
        """
        count = token_ids.shape[1]
        bias, shared = self._position_terms(count)
        x, caches = self._embedded(token_ids, 0), []
        for block in self._blocks:
            x, cache = block.prefill(x, position_bias=bias, shared_positions=shared)
            sides = ((0, 0), (0, 0), (0, self.length - count), (0, 0))
            caches.append(tuple(ops.pad(part, sides) for part in cache))
        return self._normalized(x), caches

    def step(self, token_ids, caches, index):
        """Returns the hidden states of the next tokens, `(batch, count, hidden_dim)`, and caches.

        Args:
            token_ids: integers `(batch, count)`, with a known count.
            caches: those of the tokens before; what they hold from `index` on is replaced.
            index: position of the first of the tokens, an integer or a scalar tensor.
        """
        index = ops.cast(index, "int32")
        x, found = self._embedded(token_ids, index), []
        for block, cache, (bias, positions) in zip(self._blocks, caches, self._terms, strict=True):
            x, cache = block.step(x, cache, index, position_bias=bias, layer_positions=positions)
            found.append(cache)
        return self._normalized(x), found

    def _position_terms(self, length):
        """Returns the position bias and the shared positions of so many tokens."""
        nothing = ops.zeros((1, length, self._hidden_dim), self._dtype)  # only its length is used
        bias, shared = (self._layers.get(name) for name in ("position_bias", "shared_positions"))
        takes_parts = {"as_parts": True} if isinstance(bias, CombinedPositionBias) else {}
        return bias and bias(nothing, **takes_parts), shared and shared(nothing)

    def _embedded(self, token_ids, index):
        x = self._layers["token_embedding"](token_ids)
        embed = self._layers.get("position_embedding")
        if embed is not None:
            x = _at(embed, x, index, self.length)
        normalization = self._layers.get("embeddings_layer_norm")
        return x if normalization is None else normalization(x)

    def _normalized(self, x):
        normalization = self._layers.get("final_layer_norm")
        return x if normalization is None else normalization(x)


def _at(embed, x, index, length):
    """Returns the vectors of tokens with those of their positions, from `index` on."""
    if "start_index" in inspect.signature(embed.call).parameters:
        return embed(x, start_index=index)
    if isinstance(index, int):
        return embed(x)  # the first ones
    batch, count, width = ops.shape(x)
    whole = ops.zeros((batch, length, width), x.dtype)
    whole = embed(ops.slice_update(whole, starts(0, index, 0), x))
    return ops.slice(whole, starts(0, index, 0), (batch, count, width))
