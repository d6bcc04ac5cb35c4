"""RoBERTa: BERT without next sentences, with byte-level pieces (Liu et al. 2019).

The masked-LM head has the exact GELU, whatever the blocks have. Rows of the position table up to
the id of the padding token stand for padding and are left out; a single segment is added to the
position table, and the model takes no `segment_ids`.
"""

from keras_tupe.convert.bert.layout import hugging_face_layout, lm_head
from keras_tupe.convert.hugging_face.encoders._encoder import DROPPED, Encoder, tasks
from keras_tupe.convert.hugging_face.padding_rows import (
    add_rows,
    add_segments,
    check_rows,
    cut_rows,
    rows_note,
)
from keras_tupe.convert.hugging_face.trunk_config import DEFAULTS
from keras_tupe.convert.tokenizer_files import ROBERTA
from keras_tupe.layers._checks import is_integer


def check(check, config):
    """Notes an id of padding that cannot be, and a position table that ends before a token."""
    check.expect("pad_token_id", lambda value: is_integer(value) and value >= 0, "an integer >= 0")
    check_rows(check, config, config["pad_token_id"])


def arguments(config):
    """Returns the arguments of `TupeBackbone` beside those of every trunk."""
    segments = config["type_vocab_size"]
    return {
        "position": "absolute",
        "max_sequence_length": config["max_position_embeddings"] - _first_row(config),
        "num_segments": segments if segments > 1 else 0,
    }


def change(names, found, arguments, config):
    """Cuts the rows for padding off the position table."""
    return cut_rows(found, arguments, _first_row(config))


def entries(backbone):
    """Returns the entries of the configuration beside those of every trunk."""
    return {
        "max_position_embeddings": backbone.max_sequence_length,
        "position_embedding_type": "absolute",
        "type_vocab_size": backbone.num_segments or 1,
    }


def change_back(found, backbone, config):
    """Adds rows for padding to the position table, and a segment of zeros."""
    config["max_position_embeddings"] += _first_row(config)
    add_rows(found, _first_row(config))
    add_segments(found, 1)


def _first_row(config):
    return config["pad_token_id"] + 1


ENCODER = Encoder(
    name="RoBERTa",
    model_type="roberta",
    architectures=tasks("Roberta"),
    defaults={**DEFAULTS, "pad_token_id": 1},
    frame=ROBERTA,
    arguments=arguments,
    layout=lambda backbone: {**hugging_face_layout(backbone.num_layers, "absolute"), **lm_head()},
    expected={"position": "absolute"},
    entries=entries,
    fixed={"position_embedding_type": ("absolute", "relative positions")},
    check=check,
    notes=lambda config: [rows_note(_first_row(config))],
    dropped=DROPPED,
    change=change,
    change_back=change_back,
)
