"""BERT's trunk in NumPy float64, around the oracle of any positional method."""

import functools
import math

import numpy as np
from keras import ops

from keras_tupe import positions

_TABLE = "position_embedding/embeddings"


def encode(model, given, normalize_first=False, zero_padded=False):
    """Returns what `model`, a float64 `TupeBackbone`, should answer.

    Args:
        model: the backbone; its weights are read, and its `embed` layer is called, which
            the parity with the oracle alone covers.
        given: dictionary of the model's inputs as arrays.
        normalize_first: whether the blocks are pre-LN.
        zero_padded: whether padded tokens enter the blocks as zeros.

    Returns:
        Sequence output `(batch, length, hidden_dim)`, pooled output `(batch, hidden_dim)`.
    """
    weights = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    trunk = NumpyTrunk(weights, model.layer_norm_epsilon)
    x = weights["token_embedding/embeddings"][given["token_ids"]]
    if "segment_ids" in given:
        x = x + weights["segment_embedding/embeddings"][given["segment_ids"]]
    added = added_positions(model, x)
    x = trunk.norm("embeddings_layer_norm", x + added)
    if model.embedding_dim:
        x = trunk.dense("embeddings_projection", x)
        # of another width now, so that the oracle must not add a table once more
        has_table = weights.pop(_TABLE, None) is not None
        weights |= {_TABLE: np.zeros((model.max_sequence_length, model.hidden_dim))}
        added = np.zeros_like(x) if has_table else added_positions(model, x)
    is_real = given["padding_mask"].astype(bool)
    if zero_padded:
        x = x * is_real[..., None]
    size = model.num_layers // (model.num_groups or model.num_layers)
    for layer in range(model.num_layers):
        name, dims = f"block_{layer // size}", _dims(model, layer - layer % size)

        def attend(y, block=name, dims=dims):
            # The oracle adds the positions itself: it gets vectors that lack them.
            logits = trunk.logits(model, block, dims, y - added)
            return trunk.attend(model, block, dims, y, logits, is_real[:, None, None])

        x = trunk.block(name, x, attend, normalize_first)
    if normalize_first:
        x = trunk.norm("final_layer_norm", x)
    return x, np.tanh(trunk.dense("pooled_dense", x[:, 0]))


def encode_segments(model, given, normalize_first=False):
    """Returns what a causal `model` with segments should answer, one segment after the other.

    Each block keeps what it is given, as Dai et al. (2019) write it: the next segment has the last
    `memory_length` of these vectors before it.

    Args:
        model, given, normalize_first: as of `encode`.

    Returns:
        Sequence output `(batch, length, hidden_dim)`.
    """
    weights = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    trunk = NumpyTrunk(weights, model.layer_norm_epsilon)
    count, batch = model.memory_length, len(given["token_ids"])
    kept = [np.zeros((batch, count, model.hidden_dim)) for _ in range(model.num_layers)]
    is_kept, found = np.zeros((batch, count), bool), []
    for start in range(0, given["token_ids"].shape[1], model.segment_length):
        end = start + model.segment_length
        x = weights["token_embedding/embeddings"][given["token_ids"][:, start:end]]
        x = trunk.norm("embeddings_layer_norm", x)
        seen = np.concatenate([is_kept, given["padding_mask"][:, start:end].astype(bool)], axis=1)
        for layer in range(model.num_layers):
            before, name, dims = kept[layer], f"block_{layer}", _dims(model, layer)
            kept[layer] = np.concatenate([before, x], axis=1)[:, x.shape[1] :]
            if normalize_first:
                before = trunk.norm(f"{name}/attention_layer_norm", before)

            def attend(y, before=before, name=name, dims=dims, seen=seen):
                tokens = np.concatenate([before, y], axis=1)
                logits = trunk.logits(model, name, dims, tokens)
                later = np.triu(np.ones(logits.shape[-2:], bool), 1)
                logits = np.where(later | ~seen[:, None, None], -1e30, logits)
                logits = logits[:, :, count:]
                return trunk.attend(model, name, dims, tokens, logits, True)

            x = trunk.block(name, x, attend, normalize_first)
        is_kept = seen[:, x.shape[1] :]
        found.append(trunk.norm("final_layer_norm", x) if normalize_first else x)
    return np.concatenate(found, axis=1)


def added_positions(model, x):
    """Returns what a model's position method adds to its embeddings."""
    names = [layer.name for layer in model.layers]
    if "position_embedding" not in names:
        return np.zeros_like(x)
    return ops.convert_to_numpy(model.get_layer("position_embedding")(np.zeros_like(x)))


def _dims(model, layer):
    """Returns the sizes that the attention of a layer was made with."""
    return positions.Dims(
        model.num_heads,
        model.hidden_dim // model.num_heads,
        model.max_sequence_length,
        layer_norm_epsilon=model.layer_norm_epsilon,
        attention_pattern=model.attention_pattern,
        pattern_options=model.pattern_options,
        layer_index=layer,
    )


class NumpyTrunk:
    """The pieces of a trunk, with its weights by path and the epsilon of its normalizations."""

    def __init__(self, weights, epsilon):
        self.weights, self.epsilon = weights, epsilon

    def norm(self, name, x):
        """Returns a layer normalization."""
        centered = x - x.mean(-1, keepdims=True)
        x = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + self.epsilon)
        return x * self.weights[f"{name}/gamma"] + self.weights[f"{name}/beta"]

    def dense(self, name, x):
        """Returns a dense layer."""
        return x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def logits(self, model, block, dims, tokens):
        """Returns the oracle's logits of vectors without positions."""
        own, options = self.of_block(block), dict(model.position_options)
        oracle = positions.get(model.position).logits_oracle
        return np.stack([oracle(x, own, dims, options) for x in tokens])

    def of_block(self, block):
        """Returns the weights of a block by their paths in it."""
        return {k.removeprefix(f"{block}/"): v for k, v in self.weights.items()}

    def attend(self, model, block, dims, x, logits, seen):
        """Returns the answer of an attention, of its logits and of which keys are seen."""
        own, options = self.of_block(block), dict(model.position_options)
        oracle = positions.get(model.position).scores_oracle
        logits = np.where(seen, logits, -np.inf)
        scores = np.stack([oracle(one, own, dims, options) for one in logits])
        return self.sums(f"{block}/attention", scores, x)

    def sums(self, name, scores, x):
        """Returns the output projection of sums of values."""
        context = scores @ self.heads(f"{name}/value", x)
        out = np.einsum("bhtd,hdm->btm", context, self.weights[f"{name}/output/kernel"])
        return out + self.weights[f"{name}/output/bias"]

    def heads(self, name, x):
        """Returns a projection to heads, `(batch, heads, length, key_dim)`."""
        found = np.einsum("btm,mhd->bhtd", x, self.weights[f"{name}/kernel"])
        return found + self.weights[f"{name}/bias"][None, :, None]

    def block(self, name, x, attend, normalize_first, across=None):
        """Returns a block: attention, that across to an encoder, if any, and feed-forward."""

        def feed_forward(y):
            y = self.dense(f"{name}/feedforward_intermediate", y)
            y = y * (1 + np.vectorize(math.erf)(y / math.sqrt(2))) / 2
            return self.dense(f"{name}/feedforward_output", y)

        parts = {"attention": attend, "cross_attention": across, "feedforward": feed_forward}
        for part, function in parts.items():
            norm = functools.partial(self.norm, f"{name}/{part}_layer_norm")
            if function and normalize_first:
                x = x + function(norm(x))
            elif function:
                x = norm(x + function(x))
        return x
