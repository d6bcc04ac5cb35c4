"""DeBERTa, version 1: here `"deberta"` with `variant="released"` (He et al. 2021).

One matrix makes queries, keys and values there, head by head; keys have no bias, so ours is zero,
and stays new. The released models keep a masked-LM head under `lm_predictions`, which transformers
reads with `legacy=False` only; the other one is under `cls.predictions`, and is what we write. The
pooler of its classifiers ends in GELU and not in tanh, and is left out.
"""

import numpy as np

from keras_tupe.convert.bert.layout import (
    BIAS_OF_HEADS,
    INTO_HEADS,
    SAME,
    Place,
    hugging_face_layout,
    without,
)
from keras_tupe.convert.hugging_face.encoders._encoder import (
    DROPPED,
    Encoder,
    tasks,
)
from keras_tupe.convert.hugging_face.trunk_config import DEFAULTS
from keras_tupe.convert.tokenizer_files import BERT_IDS, DEBERTA
from keras_tupe.layers._checks import is_integer

_SIDES = ("query", "key", "value")
_FUSED = "attention.self.in_proj.weight"
_TERMS = {"c2p", "p2c"}
# What must be there: the configuration's own defaults are others.
_NEEDED = {
    "relative_attention": (True, "attention without relative positions"),
    "position_biased_input": (False, "absolute positions beside the relative ones"),
}
_HEAD, _RELEASED_HEAD = "cls.predictions.", "lm_predictions.lm_head."
_HEAD_NAMES = (("transform.dense.", "dense."), ("transform.LayerNorm.", "LayerNorm."))


def check(check, config):
    """Notes positions that are not DeBERTa's, and a clip beyond the longest text."""
    for name, (value, what) in _NEEDED.items():
        if config[name] is not value:
            check.problems.append(f"{name}={config[name]!r}: {what} cannot be converted")
    if _terms(config["pos_att_type"]) != _TERMS:
        check.problems.append(
            f"pos_att_type must be both 'c2p' and 'p2c', not {config['pos_att_type']!r}"
        )
    check.expect("max_relative_positions", is_integer, "an integer")
    check.expect(
        "type_vocab_size", lambda value: is_integer(value) and value >= 0, "an integer >= 0"
    )
    if config.get("embedding_size", config.get("hidden_size")) != config.get("hidden_size"):
        check.problems.append(
            f"embedding_size={config['embedding_size']!r} must be hidden_size: its embeddings are "
            "normalized behind their projection, ours before it"
        )
    if not check.problems and _clip(config) > config["max_position_embeddings"]:
        check.problems.append(
            f"max_relative_positions={config['max_relative_positions']} must be at most "
            f"max_position_embeddings={config['max_position_embeddings']}"
        )


def arguments(config):
    """Returns the arguments of `TupeBackbone` beside those of every trunk."""
    options = {"variant": "released", "k": _clip(config), "cls": "tied"}
    return {
        "position": "deberta",
        "position_options": options,
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": config["type_vocab_size"],
        "zero_padded_embeddings": True,
    }


def layout(backbone):
    """Returns where DeBERTa keeps our weights, without its prefix."""
    places = hugging_face_layout(backbone.num_layers, "absolute")
    places = without(places, "position_embedding/", "pooled_dense/")
    if not backbone.num_segments:
        places = without(places, "segment_embedding/")
    places["shared_positions/embeddings"] = Place("encoder.rel_embeddings.weight", SAME)
    for index in range(backbone.num_layers):
        ours, theirs = f"block_{index}/attention", f"encoder.layer.{index}.attention.self"
        for side in _SIDES:
            places[f"{ours}/{side}/kernel"] = Place(f"{theirs}.in_proj.weight[{side}]", INTO_HEADS)
        places[f"{ours}/query/bias"] = Place(f"{theirs}.q_bias", BIAS_OF_HEADS)
        places[f"{ours}/value/bias"] = Place(f"{theirs}.v_bias", BIAS_OF_HEADS)
        del places[f"{ours}/key/bias"]
        of_key, of_query = f"{theirs}.pos_proj", f"{theirs}.pos_q_proj"
        places[f"{ours}/distance_key/kernel"] = Place(f"{of_key}.weight", INTO_HEADS)
        places[f"{ours}/distance_query/kernel"] = Place(f"{of_query}.weight", INTO_HEADS)
        places[f"{ours}/distance_query/bias"] = Place(f"{of_query}.bias", BIAS_OF_HEADS)
    return places


def absent(backbone):
    """Returns the weights that DeBERTa has not, which must be zero."""
    return {
        f"block_{index}/attention/key/bias": "DeBERTa's keys have no bias; zero"
        for index in range(backbone.num_layers)
    }


def change(names, found, arguments, config):
    """Cuts the fused matrices, and gives the released head the names of the other one."""
    heads = arguments["num_heads"]
    for name in [name for name in found if name.endswith(_FUSED)]:
        array = found[name]
        if array.ndim == 2 and array.shape[0] % (3 * heads) == 0:
            spelled = names.pop(name)
            parts = found.pop(name).reshape(heads, 3, -1, array.shape[1])
            for index, side in enumerate(_SIDES):
                found[f"{name}[{side}]"] = parts[:, index].reshape(-1, array.shape[1])
                names[f"{name}[{side}]"] = f"{spelled}[{side}]"
    if not any(name.startswith(_HEAD) for name in found):
        for name in [name for name in found if name.startswith(_RELEASED_HEAD)]:
            plain = name.removeprefix(_RELEASED_HEAD)
            for theirs, short in _HEAD_NAMES:
                plain = plain.replace(short, theirs)
            for each in (names, found):
                each[_HEAD + plain] = each.pop(name)
        return {}
    reason = "the other head, under cls.predictions, is taken"
    return {name: reason for name in found if name.startswith(_RELEASED_HEAD)}


def entries(backbone):
    """Returns the entries of the configuration beside those of every trunk."""
    k = backbone.position_options["k"]
    return {
        "legacy": True,
        "max_position_embeddings": backbone.max_sequence_length,
        "max_relative_positions": backbone.max_sequence_length if k is None else k,
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False,
        "relative_attention": True,
        "type_vocab_size": backbone.num_segments,
    }


def change_back(found, backbone, config):
    """Joins the fused matrices."""
    heads = backbone.num_heads
    for name in [name for name in found if name.endswith("[query]")]:
        fused = name.removesuffix("[query]")
        parts = [found.pop(f"{fused}[{side}]") for side in _SIDES]
        width = parts[0].shape[1]
        parts = [part.reshape(heads, -1, width) for part in parts]
        found[fused] = np.stack(parts, axis=1).reshape(-1, width)


def _terms(value):
    if isinstance(value, str):
        value = [term.strip() for term in value.lower().split("|")]
    is_list = isinstance(value, list) and all(isinstance(term, str) for term in value)
    return set(value) if is_list else None


def _clip(config):
    """Returns k, beyond which distances share a vector."""
    given = config["max_relative_positions"]
    return config["max_position_embeddings"] if given < 1 else given


ENCODER = Encoder(
    name="DeBERTa",
    model_type="deberta",
    architectures=tasks("Deberta"),
    defaults={
        **DEFAULTS,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "relative_attention": False,
        "max_relative_positions": -1,
        "position_biased_input": True,
        "pos_att_type": None,
        "pad_token_id": 0,
    },
    frame=DEBERTA,
    arguments=arguments,
    layout=layout,
    expected={"position": "deberta", "zero_padded_embeddings": True},
    entries=entries,
    options={"variant": "released", "cls": "tied"},
    ids=BERT_IDS,
    fixed={"talking_head": (False, "heads that are mixed")},
    head_follows=True,
    integers=("max_position_embeddings",),
    without_effect=frozenset(
        {
            *("legacy", "pooler_dropout", "pooler_hidden_act", "pooler_hidden_size"),
            *("padding_idx", "embedding_size", "vocab_type"),
        }
    ),
    check=check,
    heads=(_HEAD,),
    bias=f"{_HEAD}bias",
    decoder=f"{_HEAD}decoder",
    dropped={
        **DROPPED,
        "embeddings.position_embeddings.": "not used by this model, whose positions are relative",
        "pooler.": "it ends in GELU there, and in tanh here; fine-tune a new one",
    },
    absent=absent,
    change=change,
    change_back=change_back,
)
