"""RoFormer: here `"rope"` (Su et al. 2021).

It rotates the channels 2t and 2t + 1 of a head as a pair, ours t and t + d / 2: the channels of
queries and keys change places, which changes no number. There is no pooler. Its own tokenizer
cuts words by the dictionary of a Chinese segmenter, which ours cannot do.
"""

import numpy as np

from keras_tupe import positions
from keras_tupe.convert.bert.layout import (
    BIAS_OF_HEADS,
    INTO_HEADS,
    WORDS,
    Form,
    Place,
    dense,
    hugging_face_layout,
    without,
)
from keras_tupe.convert.hugging_face.encoders._encoder import ANY, DROPPED, Encoder, tasks
from keras_tupe.convert.hugging_face.padding_rows import add_segments
from keras_tupe.convert.hugging_face.trunk_config import DEFAULTS
from keras_tupe.convert.tokenizer_files import BERT_IDS, ROFORMER

_HEAD = "cls.predictions."
_POSITIONS = "encoder.embed_positions.weight"


def _rotated(form):
    """Returns a form whose last axis, the channels of a head, has even channels before odd ones."""

    def ours(array, heads):
        found = form.ours(array, heads)
        return np.concatenate([found[..., ::2], found[..., 1::2]], axis=-1)

    def theirs(array, heads):
        half = array.shape[-1] // 2
        pairs = np.stack([array[..., :half], array[..., half:]], axis=-1)
        return form.theirs(pairs.reshape(array.shape), heads)

    return Form(ours, theirs)


def check(check, config):
    """Notes heads that do not have pairs of channels."""
    if not check.problems:
        size = config["hidden_size"] // config["num_attention_heads"]
        if size % 2:
            check.problems.append(
                f"hidden_size={config['hidden_size']} must be an even multiple of "
                f"num_attention_heads={config['num_attention_heads']}, for pairs of channels"
            )


def arguments(config):
    """Returns the arguments of `TupeBackbone` beside those of every trunk."""
    width = config["embedding_size"]
    return {
        "position": "rope",
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": config["type_vocab_size"],
        "embedding_dim": None if width in (None, config["hidden_size"]) else width,
    }


def layout(backbone):
    """Returns where RoFormer keeps our weights, without its prefix."""
    places = hugging_face_layout(backbone.num_layers, "absolute")
    places = without(places, "position_embedding/", "pooled_dense/")
    for index in range(backbone.num_layers):
        for side in ("query", "key"):
            path = f"block_{index}/attention/{side}"
            for part, form in (("kernel", INTO_HEADS), ("bias", BIAS_OF_HEADS)):
                place = places[f"{path}/{part}"]
                places[f"{path}/{part}"] = Place(place.name, _rotated(form))
    return {**places, **dense("embeddings_projection", "embeddings_project")}


def change(names, found, arguments, config):
    """Compares the positions, which are a constant that our angles take the place of."""
    given = found.get(_POSITIONS)
    if given is None:
        return {}
    size = arguments["hidden_dim"] // arguments["num_heads"]
    waves = _waves(arguments["max_sequence_length"], size, "float64")
    tolerance = 1e-5 if given.dtype.itemsize > 2 else 1e-2
    if given.shape != waves.shape or np.abs(given.astype("float64") - waves).max() > tolerance:
        raise ValueError(
            "RoFormer's positions must be its sines and cosines, which are computed here; others "
            f"have no place. Received: {names[_POSITIONS]}, of shape {given.shape}, which differs "
            f"from them, {waves.shape}"
        )
    return {_POSITIONS: "sines and cosines, which are computed"}


def entries(backbone):
    """Returns the entries of the configuration beside those of every trunk."""
    return {
        "embedding_size": backbone.embedding_dim or backbone.hidden_dim,
        "max_position_embeddings": backbone.max_sequence_length,
        "rotary_value": False,
        "type_vocab_size": backbone.num_segments or 2,
    }


def change_back(found, backbone, config):
    """Adds two segments of zeros to a model without segments, and a constant that is kept there."""
    add_segments(found)
    size = backbone.hidden_dim // backbone.num_heads
    found[_POSITIONS] = _waves(backbone.max_sequence_length, size, found[WORDS].dtype)


def _waves(length, size, dtype):
    """Returns the sines, then the cosines of each position, `(length, size)`."""
    angles = np.arange(length)[:, None] / 10000 ** (2 * np.arange(size // 2) / size)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(dtype)


ENCODER = Encoder(
    name="RoFormer",
    model_type="roformer",
    architectures=tasks("RoFormer"),
    defaults={
        **DEFAULTS,
        "max_position_embeddings": 1536,
        "embedding_size": None,
        "pad_token_id": 0,
    },
    frame=ROFORMER,
    arguments=arguments,
    layout=layout,
    expected={"position": "rope", "embedding_dim": ANY},
    entries=entries,
    options=positions.get("rope").options,  # the defaults: other angles have no place there
    ids=BERT_IDS,
    fixed={"rotary_value": (False, "values that are rotated")},
    head_follows=True,
    integers=("max_position_embeddings", "type_vocab_size", "embedding_size"),
    check=check,
    heads=(_HEAD,),
    bias=f"{_HEAD}bias",
    decoder=f"{_HEAD}decoder",
    dropped=DROPPED,
    change=change,
    change_back=change_back,
)
