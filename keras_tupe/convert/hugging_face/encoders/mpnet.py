"""MPNet: absolute positions and T5's bias by distance, here `"bert_r"` (Song et al. 2020).

The code has 32 buckets, and padding has the id 1, whatever the configuration says of them. The
first two rows of the position table stand for padding and are left out. The masked-LM head has the
exact GELU, whatever the blocks have. There are no segments.
"""

from keras_tupe.convert.bert.layout import (
    SAME,
    Place,
    hugging_face_layout,
    lm_head,
    renamed,
    without,
)
from keras_tupe.convert.hugging_face.encoders._encoder import DROPPED, Encoder, tasks
from keras_tupe.convert.hugging_face.padding_rows import add_rows, check_rows, cut_rows, rows_note
from keras_tupe.convert.hugging_face.trunk_config import DEFAULTS
from keras_tupe.convert.hugging_face.write import refuse
from keras_tupe.convert.tokenizer_files import MPNET

_PAD = 1
_BUCKETS = {"num_buckets": 32, "max_distance": 128, "cls": "tied"}
_NAMES = (
    ("attention.self.query", "attention.attn.q"),
    ("attention.self.key", "attention.attn.k"),
    ("attention.self.value", "attention.attn.v"),
    ("attention.output.dense", "attention.attn.o"),
    ("attention.output.LayerNorm", "attention.LayerNorm"),
)


def check(check, config):
    """Notes what the code there takes for granted."""
    check.expect("pad_token_id", lambda value: value == _PAD, "1, by which positions are counted")
    buckets = _BUCKETS["num_buckets"]
    check.expect(
        "relative_attention_num_buckets",
        lambda value: value == buckets,
        f"{buckets}, with which the model computes whatever is written here",
    )
    check_rows(check, config, _PAD)


def arguments(config):
    """Returns the arguments of `TupeBackbone` beside those of every trunk."""
    return {
        "position": "bert_r",
        "position_options": dict(_BUCKETS),
        "max_sequence_length": config["max_position_embeddings"] - _PAD - 1,
    }


def layout(backbone):
    """Returns where MPNet keeps our weights, without its prefix."""
    places = {**hugging_face_layout(backbone.num_layers, "absolute"), **lm_head()}
    places = renamed(without(places, "segment_embedding/"), _NAMES)
    table = Place("encoder.relative_attention_bias.weight", SAME)
    return {**places, "position_bias/relative/embeddings": table}


def entries(backbone):
    """Returns the entries of the configuration beside those of every trunk."""
    return {
        "max_position_embeddings": backbone.max_sequence_length + _PAD + 1,
        "relative_attention_num_buckets": _BUCKETS["num_buckets"],
    }


def change_back(found, backbone, config):
    """Adds rows for padding to the position table."""
    if config["pad_token_id"] != _PAD:
        refuse("MPNet", [f"a padding token of id {config['pad_token_id']} must be of id {_PAD}"])
    add_rows(found, _PAD + 1)


ENCODER = Encoder(
    name="MPNet",
    model_type="mpnet",
    architectures=tasks("MPNet"),
    defaults={
        **{name: value for name, value in DEFAULTS.items() if name != "type_vocab_size"},
        "relative_attention_num_buckets": _BUCKETS["num_buckets"],
        "pad_token_id": _PAD,
    },
    frame=MPNET,
    arguments=arguments,
    layout=layout,
    expected={"position": "bert_r", "num_segments": 0},
    entries=entries,
    options=_BUCKETS,
    integers=("max_position_embeddings",),
    check=check,
    notes=lambda config: [rows_note(_PAD + 1)],
    dropped=DROPPED,
    change=lambda names, found, arguments, config: cut_rows(found, arguments, _PAD + 1),
    change_back=change_back,
)
