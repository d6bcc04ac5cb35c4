"""A causal trunk for one token after the other, with the keys and values of those before."""

import inspect

from keras import ops

from keras_tupe.layers import CombinedPositionBias
from keras_tupe.layers._parts import starts


class CachedBackbone:
    """A causal trunk in steps: what earlier tokens are to later ones is kept.

    The caches are a list with a pair per block, keys and values of all `length` positions, each
    `(num_heads, batch, length, key_dim)` in the compute dtype; zeros where no token was yet. With
    segments they are longer, see the attention's `cache_of`, and steps take one token each. Token
    i stands at position i in every row of a batch. Whatever a position method adds is that of a
    whole sequence of `length` tokens, or of memory and segment: biases and shared position tensors
    are made once, here, and each step takes its rows of them.

    It is made inside of the function that is compiled, since what it holds are its tensors.

    Args:
        trunk: a `TupeBackbone` whose attention pattern is causal, without segments; or the decoder
            of a `TupeSeq2SeqBackbone`, whose steps are then given what each block takes of the
            encoder.
        length: tokens of a whole sequence, an integer.
        blocks: the block of each layer, in order. Defaults to `trunk.blocks`.
    """

    def __init__(self, trunk, length, blocks=None):
        self._layers = {layer.name: layer for layer in trunk.layers}
        self._blocks = trunk.blocks if blocks is None else blocks
        self._dtype = trunk.compute_dtype
        self.length = length
        self._segments = self._blocks[0].attention.segments
        bias, shared = self._position_terms(length)
        self._terms = [(bias, block.attention.of_layer(shared)) for block in self._blocks]

    def prefill(self, token_ids, given=None):
        """Returns the hidden states of the first tokens, `(batch, count, hidden_dim)`, and caches.

        Args:
            token_ids: integers `(batch, count)`, with a known count of at most `length`.
            given: for each layer a dictionary of what its block takes besides. Defaults to nothing.
        """
        count = token_ids.shape[1]
        bias, shared = self._position_terms(count)
        x, caches = self._embedded(token_ids, 0), []
        for block, more in zip(self._blocks, self._given(given), strict=True):
            x, cache = block.prefill(x, position_bias=bias, shared_positions=shared, **more)
            caches.append(block.attention.cache_of(cache, self.length))
        return self._normalized(x), caches

    def step(self, token_ids, caches, index, given=None):
        """Returns the hidden states of the next tokens, `(batch, count, hidden_dim)`, and caches.

        Args:
            token_ids: integers `(batch, count)`, with a known count.
            caches: those of the tokens before; what they hold from `index` on is replaced.
            index: position of the first of the tokens, an integer or a scalar tensor.
            given: as of `prefill`.
        """
        index = ops.cast(index, "int32")
        x, found = self._embedded(token_ids, index), []
        layers = zip(self._blocks, caches, self._terms, self._given(given), strict=True)
        for block, cache, (bias, positions), more in layers:
            terms = {"position_bias": bias, "layer_positions": positions, **more}
            x, cache = block.step(x, cache, index, **terms)
            found.append(cache)
        return self._normalized(x), found

    def _given(self, given):
        return [{}] * len(self._blocks) if given is None else given

    def _position_terms(self, length):
        if self._segments is not None:
            length = self._segments.whole
        return position_terms(self._layers, length, self._dtype)

    def _embedded(self, token_ids, index):
        x = self._layers["token_embedding"](token_ids)
        scale = self._layers.get("embeddings_scale")
        x = x if scale is None else scale(x)
        embed = self._layers.get("position_embedding")
        if embed is not None:
            x = _at(embed, x, index, self.length)
        normalization = self._layers.get("embeddings_layer_norm")
        return x if normalization is None else normalization(x)

    def _normalized(self, x):
        normalization = self._layers.get("final_layer_norm")
        return x if normalization is None else normalization(x)


def position_terms(layers, length, dtype):
    """Returns the position bias and the shared positions of so many tokens, each `None` if none.

    Args:
        layers: those of a trunk by name.
        length: number of tokens.
        dtype: of the hidden states.
    """
    nothing = ops.zeros((1, length, layers["token_embedding"].hidden_dim), dtype)
    bias, shared = (layers.get(name) for name in ("position_bias", "shared_positions"))
    takes_parts = {"as_parts": True} if isinstance(bias, CombinedPositionBias) else {}
    return bias and bias(nothing, **takes_parts), shared and shared(nothing)


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
