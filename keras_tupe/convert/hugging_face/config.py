"""Arguments of ours from a Hugging Face config.json."""

import os

from keras_tupe import _json_file
from keras_tupe.convert.hugging_face.config_check import ConfigCheck
from keras_tupe.convert.hugging_face.trunk_config import (
    DEFAULTS,
    NO_DECODER,
    check_trunk,
    trunk_arguments,
    trunk_notes,
)

POSITIONS = {"absolute": "absolute", "relative_key": "shaw", "relative_key_query": "qkr_4"}
# What BERT's configuration has where a file leaves it out.
_DEFAULTS = {**DEFAULTS, "position_embedding_type": "absolute"}
_TASKS = (
    *("MaskedLM", "PreTraining", "NextSentencePrediction", "SequenceClassification"),
    *("MultipleChoice", "TokenClassification", "QuestionAnswering"),
)
_ARCHITECTURES = ("BertModel", *(f"BertFor{task}" for task in _TASKS))
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
        **trunk_arguments(config),
        "position": position,
        "position_options": {} if position == "absolute" else {"share_heads": True},
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": config["type_vocab_size"],
    }
    return arguments, trunk_notes(config, _DEFAULTS, NO_DECODER, _WITHOUT_EFFECT)


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
    check.fixed(NO_DECODER)
    check.expect("hidden_act", lambda value: value == "gelu", "'gelu', the exact one")
    check.expect(
        "position_embedding_type",
        lambda value: isinstance(value, str) and value in POSITIONS,
        f"one of {list(POSITIONS)}",
    )
    check_trunk(check)
    check.end(path)
