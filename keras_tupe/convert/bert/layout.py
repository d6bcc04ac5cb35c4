"""Where Hugging Face and KerasHub keep the weights of a BERT."""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Form:
    """How two libraries shape one weight.

    Attributes:
        ours: function (their array, num_heads) -> our array.
        theirs: the inverse, function (our array, num_heads) -> their array.
    """

    ours: Callable
    theirs: Callable


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a weight of ours is found.

    Attributes:
        name: the weight's name there.
        form: its `Form` there.
    """

    name: str
    form: Form


SAME = Form(lambda array, heads: array, lambda array, heads: array)
# torch keeps (out, in) and does not cut the heads apart.
KERNEL = Form(lambda array, heads: array.T, lambda array, heads: array.T)
INTO_HEADS = Form(
    lambda array, heads: array.T.reshape(array.shape[1], heads, -1),
    lambda array, heads: array.reshape(array.shape[0], -1).T,
)
BIAS_OF_HEADS = Form(
    lambda array, heads: array.reshape(heads, -1), lambda array, heads: array.reshape(-1)
)
FROM_HEADS = Form(
    lambda array, heads: array.T.reshape(heads, -1, array.shape[0]),
    lambda array, heads: array.reshape(-1, array.shape[-1]).T,
)
# Theirs is shared by the heads and goes by query minus key, ours by key minus query.
DISTANCES = Form(
    lambda array, heads: np.ascontiguousarray(array[::-1])[:, None],
    lambda array, heads: array[::-1, 0],
)


ABSOLUTE_TABLE = "embeddings.position_embeddings.weight"
WORDS = "embeddings.word_embeddings.weight"
SEGMENTS = "embeddings.token_type_embeddings.weight"


def hugging_face_layout(num_layers, position):
    """Returns where Hugging Face's BERT keeps our weights, without the prefix `bert.`.

    Args:
        num_layers: number of blocks.
        position: `"absolute"`, `"shaw"` or `"qkr_4"`.

    Returns:
        Dictionary: path of our weight -> `Place`.
    """
    places = {
        "token_embedding/embeddings": Place(WORDS, SAME),
        "segment_embedding/embeddings": Place(SEGMENTS, SAME),
        **norm("embeddings_layer_norm", "embeddings.LayerNorm"),
    }
    if position == "absolute":
        places["position_embedding/embeddings"] = Place(ABSOLUTE_TABLE, SAME)
    for index in range(num_layers):
        block, layer = f"block_{index}", f"encoder.layer.{index}"
        for side in ("query", "key", "value"):
            places |= dense(
                f"{block}/attention/{side}",
                f"{layer}.attention.self.{side}",
                INTO_HEADS,
                BIAS_OF_HEADS,
            )
        places |= dense(f"{block}/attention/output", f"{layer}.attention.output.dense", FROM_HEADS)
        if position != "absolute":
            places[f"{block}/attention/position_table/distance_embeddings"] = Place(
                f"{layer}.attention.self.distance_embedding.weight", DISTANCES
            )
        places |= norm(f"{block}/attention_layer_norm", f"{layer}.attention.output.LayerNorm")
        places |= dense(f"{block}/feedforward_intermediate", f"{layer}.intermediate.dense")
        places |= dense(f"{block}/feedforward_output", f"{layer}.output.dense")
        places |= norm(f"{block}/feedforward_layer_norm", f"{layer}.output.LayerNorm")
    return {
        **places,
        **dense("pooled_dense", "pooler.dense"),
        **dense("mlm_head/dense", "cls.predictions.transform.dense"),
        **norm("mlm_head/layer_norm", "cls.predictions.transform.LayerNorm"),
        "mlm_head/output_bias": Place("cls.predictions.bias", SAME),
        **dense("pair_logits", "cls.seq_relationship"),
    }


def renamed(places, names):
    """Returns places with other names.

    Args:
        places: dictionary: path -> `Place`.
        names: pairs of a part of a name and what stands in place of it; applied in order.
    """
    found = {}
    for path, place in places.items():
        name = place.name
        for old, new in names:
            name = name.replace(old, new)
        found[path] = dataclasses.replace(place, name=name)
    return found


def without(places, *starts):
    """Returns the places whose paths do not begin with any of `starts`."""
    return {path: place for path, place in places.items() if not path.startswith(starts)}


def lm_head():
    """Returns the places of a masked-LM head as RoBERTa and those after it have it."""
    return {
        **dense("mlm_head/dense", "lm_head.dense"),
        **norm("mlm_head/layer_norm", "lm_head.layer_norm"),
        "mlm_head/output_bias": Place("lm_head.bias", SAME),
    }


def keras_hub_layout(num_layers):
    """Returns where KerasHub's `BertMaskedLM` keeps our weights, as `hugging_face_layout`."""
    places = {}
    for path in hugging_face_layout(num_layers, "absolute"):
        name = path
        for ours, theirs in _KERAS_HUB:
            name = name.replace(ours, theirs)
        places[path] = Place(name, SAME)
    return places


_KERAS_HUB = (
    ("block_", "transformer_layer_"),
    ("/attention/output/", "/self_attention_layer/attention_output/"),
    ("/attention/", "/self_attention_layer/"),
    ("/attention_layer_norm/", "/self_attention_layer_norm/"),
    ("/feedforward_intermediate/", "/feedforward_intermediate_dense/"),
    ("/feedforward_output/", "/feedforward_output_dense/"),
    ("mlm_head/dense/", "mlm_head/intermediate_dense/"),
    ("mlm_head/layer_norm/", "mlm_head/intermediate_layer_norm/"),
)


def dense(ours, theirs, kernel=KERNEL, bias=SAME):
    """Returns the places of a dense layer: kernel and bias."""
    return {
        f"{ours}/kernel": Place(f"{theirs}.weight", kernel),
        f"{ours}/bias": Place(f"{theirs}.bias", bias),
    }


def norm(ours, theirs):
    """Returns the places of a layer normalization: gamma and beta."""
    return {
        f"{ours}/gamma": Place(f"{theirs}.weight", SAME),
        f"{ours}/beta": Place(f"{theirs}.bias", SAME),
    }
