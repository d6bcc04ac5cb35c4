"""ALBERT: layers that share blocks, and factorised embeddings (Lan et al. 2020).

The embeddings are always mapped to the width of the blocks there, also where both are one width.
"""

from keras_tupe.convert.bert.layout import dense, hugging_face_layout, renamed
from keras_tupe.convert.hugging_face.encoders._encoder import ANY, DROPPED, Encoder, tasks
from keras_tupe.convert.hugging_face.padding_rows import add_segments
from keras_tupe.convert.hugging_face.trunk_config import DEFAULTS
from keras_tupe.convert.tokenizer_files import ALBERT, BERT_IDS

_HEAD = "predictions."
_NAMES = (
    ("attention.self.", "attention."),
    ("attention.output.", "attention."),
    ("intermediate.dense.", "ffn."),
    (".output.dense.", ".ffn_output."),
    (".output.LayerNorm.", ".full_layer_layer_norm."),
    ("pooler.dense.", "pooler."),
    ("cls.predictions.transform.", _HEAD),
    ("cls.predictions.", _HEAD),
)


def check(check, config):
    """Notes groups that do not divide the layers."""
    layers, groups = config.get("num_hidden_layers"), config["num_hidden_groups"]
    if not check.problems and layers % groups:
        check.problems.append(
            f"num_hidden_layers={layers} must be divisible by num_hidden_groups={groups}"
        )


def arguments(config):
    """Returns the arguments of `TupeBackbone` beside those of every trunk."""
    return {
        "position": "absolute",
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": config["type_vocab_size"],
        "embedding_dim": config["embedding_size"],
        "num_groups": config["num_hidden_groups"],
    }


def layout(backbone):
    """Returns where ALBERT keeps our weights, without its prefix."""
    groups = backbone.num_groups or backbone.num_layers
    layers = [
        (f"encoder.layer.{group}.", f"encoder.albert_layer_groups.{group}.albert_layers.0.")
        for group in range(groups)
    ]
    return {
        **renamed(hugging_face_layout(groups, "absolute"), (*layers, *_NAMES)),
        **dense("embeddings_projection", "encoder.embedding_hidden_mapping_in"),
    }


def refused(backbone):
    """Returns why a model cannot be an ALBERT."""
    if backbone.embedding_dim is not None:
        return []
    return ["embedding_dim=None: ALBERT maps its embeddings to the width of the blocks"]


def entries(backbone):
    """Returns the entries of the configuration beside those of every trunk."""
    return {
        "embedding_size": backbone.embedding_dim,
        "inner_group_num": 1,
        "max_position_embeddings": backbone.max_sequence_length,
        "num_hidden_groups": backbone.num_groups or backbone.num_layers,
        "position_embedding_type": "absolute",
        "type_vocab_size": backbone.num_segments or 2,
    }


ENCODER = Encoder(
    name="ALBERT",
    model_type="albert",
    architectures=tasks("Albert", "PreTraining"),
    defaults={
        **DEFAULTS,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0,
        "attention_probs_dropout_prob": 0,
        "embedding_size": 128,
        "num_hidden_groups": 1,
        "pad_token_id": 0,
    },
    frame=ALBERT,
    arguments=arguments,
    layout=layout,
    expected={"position": "absolute", "embedding_dim": ANY, "num_groups": ANY},
    entries=entries,
    ids=BERT_IDS,
    fixed={
        "inner_group_num": (1, "groups of more than one layer"),
        "position_embedding_type": ("absolute", "relative positions"),
    },
    head_follows=True,
    integers=(
        *("max_position_embeddings", "type_vocab_size", "embedding_size"),
        *("num_hidden_groups", "inner_group_num"),
    ),
    without_effect=frozenset({"classifier_dropout_prob"}),
    check=check,
    refused=refused,
    heads=(_HEAD,),
    bias=f"{_HEAD}bias",
    decoder=f"{_HEAD}decoder",
    dropped={**DROPPED, "sop_classifier.": "the head of sentence order"},
    change_back=lambda found, backbone, config: add_segments(found),
)
