"""ELECTRA: generators and discriminators, with factorised embeddings (Clark et al. 2020).

A generator becomes a masked LM with its head, which has the exact GELU, whatever the blocks have.
A discriminator becomes a `TupeTokenDiscriminator`. There is no pooler.
"""

from keras_tupe.convert.bert.layout import (
    SAME,
    Place,
    dense,
    hugging_face_layout,
    norm,
    without,
)
from keras_tupe.convert.hugging_face.encoders._encoder import ANY, DROPPED, Encoder, tasks
from keras_tupe.convert.hugging_face.padding_rows import add_segments
from keras_tupe.convert.hugging_face.trunk_config import DEFAULTS
from keras_tupe.convert.tokenizer_files import BERT_IDS, ELECTRA

_BIAS = "generator_lm_head.bias"
_DISCRIMINATOR = "discriminator_predictions."


def arguments(config):
    """Returns the arguments of `TupeBackbone` beside those of every trunk."""
    width = config["embedding_size"]
    return {
        "position": "absolute",
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": config["type_vocab_size"],
        "embedding_dim": None if width == config["hidden_size"] else width,
    }


def layout(backbone):
    """Returns where ELECTRA keeps our weights, without its prefix."""
    return {
        **without(hugging_face_layout(backbone.num_layers, "absolute"), "pooled_dense/"),
        **dense("embeddings_projection", "embeddings_project"),
        **dense("mlm_head/dense", "generator_predictions.dense"),
        **norm("mlm_head/layer_norm", "generator_predictions.LayerNorm"),
        "mlm_head/output_bias": Place(_BIAS, SAME),
        **dense("discriminator_head/dense", f"{_DISCRIMINATOR}dense"),
        **dense("discriminator_head/prediction", f"{_DISCRIMINATOR}dense_prediction"),
    }


def entries(backbone):
    """Returns the entries of the configuration beside those of every trunk."""
    return {
        "embedding_size": backbone.embedding_dim or backbone.hidden_dim,
        "max_position_embeddings": backbone.max_sequence_length,
        "position_embedding_type": "absolute",
        "type_vocab_size": backbone.num_segments or 2,
    }


ENCODER = Encoder(
    name="ELECTRA",
    model_type="electra",
    architectures=tasks("Electra", "PreTraining"),
    defaults={**DEFAULTS, "embedding_size": 128, "pad_token_id": 0},
    frame=ELECTRA,
    arguments=arguments,
    layout=layout,
    expected={"position": "absolute", "embedding_dim": ANY},
    entries=entries,
    ids=BERT_IDS,
    fixed={"position_embedding_type": ("absolute", "relative positions")},
    integers=("max_position_embeddings", "type_vocab_size", "embedding_size"),
    without_effect=frozenset(
        {
            *("summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"),
            "summary_first_dropout",
        }
    ),
    heads=("generator_", _DISCRIMINATOR),
    discriminator=_DISCRIMINATOR,
    bias=_BIAS,
    decoder="generator_lm_head",
    dropped={
        **DROPPED,
        "sequence_summary.": DROPPED["classifier."],
    },
    change_back=lambda found, backbone, config: add_segments(found),
)
