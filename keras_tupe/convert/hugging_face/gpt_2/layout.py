"""Where Hugging Face's GPT-2 keeps the weights."""

import numpy as np

from keras_tupe.convert.bert.layout import BIAS_OF_HEADS, SAME, Form, Place, dense, norm

WORDS = "wte.weight"
_SIDES = ("query", "key", "value")
# Its `Conv1D` keeps kernels as Keras does, (in, out), but does not cut the heads apart.
_INTO_HEADS = Form(
    lambda array, heads: array.reshape(array.shape[0], heads, -1),
    lambda array, heads: array.reshape(array.shape[0], -1),
)
_FROM_HEADS = Form(
    lambda array, heads: array.reshape(heads, -1, array.shape[-1]),
    lambda array, heads: array.reshape(-1, array.shape[-1]),
)


def gpt_2_layout(num_layers):
    """Returns where GPT-2 keeps our weights, without the prefix `transformer.`.

    The one kernel of query, key and value counts as three, see `cut_fused`.

    Args:
        num_layers: number of blocks.

    Returns:
        Dictionary: path of our weight -> `Place`.
    """
    places = {
        "token_embedding/embeddings": Place(WORDS, SAME),
        "position_embedding/embeddings": Place("wpe.weight", SAME),
        **norm("final_layer_norm", "ln_f"),
    }
    for index in range(num_layers):
        block, layer = f"block_{index}", f"h.{index}"
        for side in _SIDES:
            ours, theirs = f"{block}/attention/{side}", f"{layer}.attn.c_attn"
            places[f"{ours}/kernel"] = Place(f"{theirs}.weight[{side}]", _INTO_HEADS)
            places[f"{ours}/bias"] = Place(f"{theirs}.bias[{side}]", BIAS_OF_HEADS)
        places |= norm(f"{block}/attention_layer_norm", f"{layer}.ln_1")
        places |= dense(f"{block}/attention/output", f"{layer}.attn.c_proj", _FROM_HEADS)
        places |= norm(f"{block}/feedforward_layer_norm", f"{layer}.ln_2")
        places |= dense(f"{block}/feedforward_intermediate", f"{layer}.mlp.c_fc", SAME)
        places |= dense(f"{block}/feedforward_output", f"{layer}.mlp.c_proj", SAME)
    return places


def cut_fused(names, found):
    """Cuts the fused weights of query, key and value into three, in place.

    Args:
        names, found: dictionaries from plain names to names in the file, and to arrays. One whose
            last axis is not of three equal parts stays, to be called left over.
    """
    for name in [name for name in found if name.endswith(("c_attn.weight", "c_attn.bias"))]:
        if found[name].ndim and found[name].shape[-1] % 3 == 0:
            spelled, array = names.pop(name), found.pop(name)
            for side, part in zip(_SIDES, np.split(array, 3, axis=-1), strict=True):
                names[f"{name}[{side}]"], found[f"{name}[{side}]"] = f"{spelled}[{side}]", part


def join_fused(found):
    """Joins the three parts of fused weights again, in place."""
    for name in [name for name in found if name.endswith("[query]")]:
        fused = name.removesuffix("[query]")
        found[fused] = np.concatenate([found.pop(f"{fused}[{side}]") for side in _SIDES], axis=-1)
