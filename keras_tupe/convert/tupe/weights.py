"""Where TUPE's released code keeps the weights of an encoder and its masked-LM head."""

import numpy as np
from keras import ops

from keras_tupe.layers.relative_bucket_bias import relative_buckets

ENCODER = "decoder.sentence_encoder."
HEAD = "decoder.lm_head."
TIED_DECODER = f"{HEAD}weight"
BUCKET_TABLE = f"{ENCODER}rp_bucket"
NUM_BUCKETS, MAX_DISTANCE = 32, 128  # constants of the released code
FROM_CLS, TO_CLS = 16, 32  # rows of the bucket table that no distance uses


def released_shapes(settings, vocabulary_size):
    """Returns the names and shapes of the weights that a checkpoint must hold.

    Args:
        settings: `TupeSettings`.
        vocabulary_size: number of tokens.

    Returns:
        Dictionary: name -> tuple of ints. Linear layers keep (out, in).
    """
    width, inner = settings.hidden_dim, settings.intermediate_dim
    shapes = {
        f"{ENCODER}embed_tokens.weight": (vocabulary_size, width),
        f"{ENCODER}pos.weight": (settings.max_sequence_length + 1, width),
        **_linear(f"{ENCODER}pos_q_linear", width, width),
        **_linear(f"{ENCODER}pos_k_linear", width, width),
        **_norm(f"{ENCODER}pos_ln", width),
        **_norm(f"{ENCODER}emb_layer_norm", width),
        **_linear(f"{HEAD}dense", width, width),
        **_norm(f"{HEAD}layer_norm", width),
        f"{HEAD}bias": (vocabulary_size,),
    }
    if settings.has_relative_bias:
        name = f"{ENCODER}relative_attention_bias.weight"
        shapes[name] = (NUM_BUCKETS + 1, settings.num_heads)
    for index in range(settings.num_layers):
        layer = f"{ENCODER}layers.{index}."
        shapes |= {
            f"{layer}self_attn.in_proj_weight": (3 * width, width),
            f"{layer}self_attn.in_proj_bias": (3 * width,),
            **_linear(f"{layer}self_attn.out_proj", width, width),
            **_norm(f"{layer}self_attn_layer_norm", width),
            **_linear(f"{layer}fc1", inner, width),
            **_linear(f"{layer}fc2", width, inner),
            **_norm(f"{layer}final_layer_norm", width),
        }
    return shapes


def _linear(name, outputs, inputs):
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def values_by_path(settings, weights):
    """Returns the values of our weights.

    The released table of positions has no vector for position 0, which is [CLS]; our row 0 is not
    used either and gets zeros.

    Args:
        settings: `TupeSettings`.
        weights: dictionary: name -> array, of `released_shapes`.

    Returns:
        Dictionary: path of our weight -> array.
    """
    reader = _Reader(weights, settings.num_heads)
    table = weights[f"{ENCODER}pos.weight"]
    untied = "position_bias/" + ("absolute_reset/" * settings.has_relative_bias) + "untied"
    values = {
        "token_embedding/embeddings": weights[f"{ENCODER}embed_tokens.weight"],
        **reader.norm("embeddings_layer_norm", f"{ENCODER}emb_layer_norm"),
        f"{untied}/cls_embeddings": table[:2],
        f"{untied}/projection/embeddings": np.concatenate([np.zeros_like(table[:1]), table[2:]]),
        **reader.norm(f"{untied}/projection/layer_norm", f"{ENCODER}pos_ln"),
        **reader.into_heads(f"{untied}/projection/query", f"{ENCODER}pos_q_linear"),
        **reader.into_heads(f"{untied}/projection/key", f"{ENCODER}pos_k_linear"),
        **reader.dense("mlm_head/dense", f"{HEAD}dense"),
        **reader.norm("mlm_head/layer_norm", f"{HEAD}layer_norm"),
        "mlm_head/output_bias": weights[f"{HEAD}bias"],
    }
    if settings.has_relative_bias:
        buckets = weights[f"{ENCODER}relative_attention_bias.weight"]
        values["position_bias/relative_reset/relative/embeddings"] = buckets[:NUM_BUCKETS]
        values["position_bias/relative_reset/cls_reset/theta"] = buckets[[FROM_CLS, TO_CLS]]
    for index in range(settings.num_layers):
        values |= reader.block(f"block_{index}", f"{ENCODER}layers.{index}")
    return values


class _Reader:
    """Released weights under our paths."""

    def __init__(self, weights, num_heads):
        self._weights = weights
        self._num_heads = num_heads

    def norm(self, ours, theirs):
        names = {"gamma": "weight", "beta": "bias"}
        return {f"{ours}/{name}": self._weights[f"{theirs}.{names[name]}"] for name in names}

    def dense(self, ours, theirs):
        kernel = self._weights[f"{theirs}.weight"].T  # (in, out)
        return {f"{ours}/kernel": kernel, f"{ours}/bias": self._weights[f"{theirs}.bias"]}

    def into_heads(self, ours, theirs):
        return self._cut(ours, self._weights[f"{theirs}.weight"], self._weights[f"{theirs}.bias"])

    def _cut(self, ours, matrix, bias):
        width = matrix.shape[1]
        return {
            f"{ours}/kernel": matrix.T.reshape(width, self._num_heads, -1),  # (m, h, d)
            f"{ours}/bias": bias.reshape(self._num_heads, -1),  # (h, d)
        }

    def block(self, ours, theirs):
        attention = f"{theirs}.self_attn"
        matrices = np.split(self._weights[f"{attention}.in_proj_weight"], 3)
        biases = np.split(self._weights[f"{attention}.in_proj_bias"], 3)
        values = {}
        for side, matrix, bias in zip(("query", "key", "value"), matrices, biases, strict=True):
            values |= self._cut(f"{ours}/attention/{side}", matrix, bias)
        output = self.dense(f"{ours}/attention/output", f"{attention}.out_proj")
        kernel = output[f"{ours}/attention/output/kernel"]
        values |= output
        values[f"{ours}/attention/output/kernel"] = kernel.reshape(
            self._num_heads, -1, kernel.shape[1]
        )  # (h, d, m)
        return {
            **values,
            **self.norm(f"{ours}/attention_layer_norm", f"{theirs}.self_attn_layer_norm"),
            **self.dense(f"{ours}/feedforward_intermediate", f"{theirs}.fc1"),
            **self.dense(f"{ours}/feedforward_output", f"{theirs}.fc2"),
            **self.norm(f"{ours}/feedforward_layer_norm", f"{theirs}.final_layer_norm"),
        }


def released_buckets(length):
    """Returns the table of buckets that later released code keeps in its checkpoints.

    Args:
        length: positions, in tokens.

    Returns:
        Integers, `(length, length)`, query by key.
    """
    places = np.arange(length)
    buckets = relative_buckets(places[None] - places[:, None], NUM_BUCKETS, MAX_DISTANCE)
    table = np.array(ops.convert_to_numpy(buckets))
    table[:, 0] = TO_CLS
    table[0] = FROM_CLS
    return table
