"""Entries of config.json that BERT and its relatives share: read, checked and written."""

from keras_tupe.convert.hugging_face.config_check import (
    FIXED,
    WITHOUT_EFFECT,
    not_looked_at,
    one_rate,
)

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)
# What most of their configurations have where a file leaves it out.
DEFAULTS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
}
NO_DECODER = {**FIXED, "is_decoder": (False, "decoders")}
_RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")


def check_trunk(check, integers=("max_position_embeddings", "type_vocab_size"), required=SIZES):
    """Notes sizes, rates and numbers that cannot be.

    Args:
        check: a `ConfigCheck`.
        integers: names of entries that must be integers > 0 if they are there.
        required: names of entries that must be there, integers > 0.
    """
    check.integers(*integers, required=required)
    check.numbers("layer_norm_eps", "initializer_range")
    check.shares(*_RATES)
    check.divisible("hidden_size", "num_attention_heads")


def trunk_arguments(config):
    """Returns the arguments of `TupeBackbone` that all of them have.

    Args:
        config: dictionary with all entries, those that the file left out too.
    """
    return {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["num_hidden_layers"],
        "num_heads": config["num_attention_heads"],
        "hidden_dim": config["hidden_size"],
        "intermediate_dim": config["intermediate_size"],
        "dropout": float(config["hidden_dropout_prob"]),
        "initializer_range": float(config["initializer_range"]),
        "layer_norm_epsilon": float(config["layer_norm_eps"]),
    }


def trunk_notes(config, *known):
    """Returns notes about dropout rates and about entries that are in none of `known`."""
    return [*one_rate(config, *_RATES), *not_looked_at(config, SIZES, WITHOUT_EFFECT, *known)]


def trunk_entries(backbone):
    """Returns the entries that all of them have, for a model of ours."""
    return {
        "attention_probs_dropout_prob": backbone.dropout,
        "hidden_dropout_prob": backbone.dropout,
        "hidden_size": backbone.hidden_dim,
        "initializer_range": backbone.initializer_range,
        "intermediate_size": backbone.intermediate_dim,
        "layer_norm_eps": backbone.layer_norm_epsilon,
        "num_attention_heads": backbone.num_heads,
        "num_hidden_layers": backbone.num_layers,
        "torch_dtype": backbone.dtype_policy.variable_dtype,
        "vocab_size": backbone.vocabulary_size,
    }
