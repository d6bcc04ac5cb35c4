"""Arguments of ours from a Hugging Face config.json."""

import os

from keras_tupe import _json_file
from keras_tupe.convert.hugging_face.config_check import (
    FIXED,
    WITHOUT_EFFECT,
    ConfigCheck,
    not_looked_at,
    one_rate,
)

POSITIONS = {"absolute": "absolute", "relative_key": "shaw", "relative_key_query": "qkr_4"}
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)
# What BERT's configuration has where a file leaves it out.
_DEFAULTS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
}
_TASKS = (
    *("MaskedLM", "PreTraining", "NextSentencePrediction", "SequenceClassification"),
    *("MultipleChoice", "TokenClassification", "QuestionAnswering"),
)
_ARCHITECTURES = ("BertModel", *(f"BertFor{task}" for task in _TASKS))
_FIXED = {**FIXED, "is_decoder": (False, "decoders")}
_WITHOUT_EFFECT = {
    "directionality",
    *("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
    *("pooler_size_per_head", "pooler_type"),  # of Google's files; they were never used
}


def read_hf_config(path):
    """Returns the arguments of `TupeBackbone` that a configuration asks for, and notes.

    Args:
        path: `config.json` of a Hugging Face BERT.

    Returns:
        `(arguments, notes)`: a dictionary, and sentences for the report.

    Raises:
        ValueError: naming all that our encoder cannot do.
        FileNotFoundError: if there is no such file.
    """
    config = read_json(path)
    _check(config, path)
    config = {**_DEFAULTS, **config}
    position = POSITIONS[config["position_embedding_type"]]
    arguments = {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["num_hidden_layers"],
        "num_heads": config["num_attention_heads"],
        "hidden_dim": config["hidden_size"],
        "intermediate_dim": config["intermediate_size"],
        "position": position,
        "position_options": {} if position == "absolute" else {"share_heads": True},
        "dropout": float(config["hidden_dropout_prob"]),
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": config["type_vocab_size"],
        "initializer_range": float(config["initializer_range"]),
        "layer_norm_epsilon": float(config["layer_norm_eps"]),
    }
    return arguments, _notes(config)


def read_json(path):
    """Returns the dictionary in a JSON file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds something else.
    """
    try:
        return _json_file.read_json_object(path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise FileNotFoundError(
            "The folder of a converted model must hold this file. "
            f"Received: {os.fspath(path)!r}, which is not there"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"The file must hold a JSON object: {error}. Received: {os.fspath(path)!r}"
        ) from None


def _check(config, path):
    check = ConfigCheck(config)
    check.model_type("bert")
    check.architectures(_ARCHITECTURES)
    check.fixed(_FIXED)
    check.expect("hidden_act", lambda value: value == "gelu", "'gelu', the exact one")
    check.expect(
        "position_embedding_type",
        lambda value: isinstance(value, str) and value in POSITIONS,
        f"one of {list(POSITIONS)}",
    )
    check.integers("max_position_embeddings", "type_vocab_size", required=_SIZES)
    check.numbers("layer_norm_eps", "initializer_range")
    check.shares("hidden_dropout_prob", "attention_probs_dropout_prob")
    check.divisible("hidden_size", "num_attention_heads")
    check.end(path)


def _notes(config):
    return [
        *one_rate(config, "hidden_dropout_prob", "attention_probs_dropout_prob"),
        *not_looked_at(config, _DEFAULTS, _SIZES, _FIXED, WITHOUT_EFFECT, _WITHOUT_EFFECT),
    ]
