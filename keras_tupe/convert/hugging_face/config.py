"""Arguments of ours from a Hugging Face config.json."""

import os

from keras_tupe import _json_file
from keras_tupe.layers._checks import is_integer

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
# What must be as here, or left out, with what it would mean.
_FIXED = {
    "is_decoder": (False, "decoders"),
    "add_cross_attention": (False, "cross-attention"),
    "tie_word_embeddings": (True, "an output matrix of its own"),
    "pruned_heads": ({}, "pruned heads"),
    "quantization_config": (None, "quantized weights"),
    "auto_map": (None, "code of its own"),
}
# They do not change what the encoder computes.
_WITHOUT_EFFECT = {
    *("model_type", "torch_dtype", "dtype", "transformers_version", "use_cache", "_name_or_path"),
    *("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id"),
    *("classifier_dropout", "problem_type", "finetuning_task", "num_labels", "id2label"),
    *("label2id", "gradient_checkpointing", "chunk_size_feed_forward", "return_dict"),
    *("output_attentions", "output_hidden_states", "output_past", "attn_implementation"),
    *("architectures", "directionality", "tokenizer_class", "language", "name", "torchscript"),
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
    problems = _problems(config)
    if problems:
        raise ValueError(
            "This Hugging Face model has no counterpart here: "
            f"{'; '.join(problems)}. Received: {os.fspath(path)!r}"
        )
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


def _problems(config):
    found = []

    def expect(name, is_right, expected):
        if name in config and not is_right(config[name]):
            found.append(f"{name} must be {expected}, not {config[name]!r}")

    if config.get("model_type") != "bert":
        found.append(f"model_type must be 'bert', not {config.get('model_type')!r}")
    expect(
        "architectures",
        lambda names: names is None or (isinstance(names, list) and _are_known(names)),
        f"among {list(_ARCHITECTURES)}",
    )
    for name, (value, what) in _FIXED.items():
        if (config.get(name, value) or None) != (value or None):
            found.append(f"{name}={config[name]!r}: {what} cannot be converted")
    expect("hidden_act", lambda value: value == "gelu", "'gelu', the exact one")
    expect(
        "position_embedding_type",
        lambda value: isinstance(value, str) and value in POSITIONS,
        f"one of {list(POSITIONS)}",
    )
    found += [f"{name} is missing" for name in _SIZES if name not in config]
    for name in (*_SIZES, "max_position_embeddings", "type_vocab_size"):
        expect(name, lambda value: is_integer(value) and value > 0, "an integer > 0")
    for name in ("layer_norm_eps", "initializer_range"):
        expect(name, lambda value: _is_number(value) and value > 0, "a number > 0")
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        expect(name, lambda value: _is_number(value) and 0 <= value < 1, "a share in [0, 1)")
    if not found and config["hidden_size"] % config["num_attention_heads"]:
        found.append(
            f"hidden_size={config['hidden_size']} must be divisible by "
            f"num_attention_heads={config['num_attention_heads']}"
        )
    return found


def _notes(config):
    notes = []
    rates = config["hidden_dropout_prob"], config["attention_probs_dropout_prob"]
    if rates[0] != rates[1]:
        notes.append(
            f"dropout is {rates[0]} everywhere, from hidden_dropout_prob; there is one rate here, "
            f"and attention_probs_dropout_prob={rates[1]} is not used (training only)"
        )
    unknown = sorted(set(config) - {*_DEFAULTS, *_SIZES, *_FIXED, *_WITHOUT_EFFECT})
    if unknown:
        notes.append(f"entries of config.json that are not looked at: {', '.join(unknown)}")
    return notes


def _are_known(architectures):
    return all(name in _ARCHITECTURES for name in architectures)


def _is_number(value):
    # the largest number is far beyond any that makes sense; NaN is not below it
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e30
