"""Arguments of ours from the config.json of a Longformer, and the other way."""

from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.config_check import (
    FIXED,
    WITHOUT_EFFECT,
    ConfigCheck,
    not_looked_at,
    one_rate,
)
from keras_tupe.layers._checks import is_integer

_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "attention_window"),
)
# What Longformer's configuration has where a file leaves it out.
_DEFAULTS = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 1,
}
_TASKS = (
    *("MaskedLM", "SequenceClassification", "MultipleChoice", "TokenClassification"),
    "QuestionAnswering",
)
_ARCHITECTURES = ("LongformerModel", *(f"LongformerFor{task}" for task in _TASKS))
_FIXED = {**FIXED, "is_decoder": (False, "decoders")}
_WITHOUT_EFFECT = {
    *("onnx_export", "attention_mode", "ignore_attention_mask", "position_embedding_type"),
}


def read_config(path, num_global):
    """Returns the arguments of `TupeBackbone` that a configuration asks for, and notes.

    Args:
        path: `config.json` of a Hugging Face Longformer.
        num_global: tokens at the beginning that attend to all and that all attend to.

    Returns:
        `(arguments, first_row, notes)`: a dictionary, the row of the position table that belongs
        to the first token, and sentences for the report.

    Raises:
        ValueError: naming all that our encoder cannot do.
        FileNotFoundError: if there is no such file.
    """
    config = read_json(path)
    check = ConfigCheck(config)
    check.model_type("longformer")
    check.architectures(_ARCHITECTURES)
    check.fixed(_FIXED)
    check.expect("hidden_act", lambda value: value == "gelu", "'gelu', the exact one")
    check.expect(
        "position_embedding_type", lambda value: value == "absolute", "'absolute' or left out"
    )
    sizes = [name for name in _SIZES if name != "attention_window"]
    check.integers("max_position_embeddings", "type_vocab_size", required=sizes)
    check.expect("pad_token_id", lambda value: is_integer(value) and value >= 0, "an integer >= 0")
    check.numbers("layer_norm_eps", "initializer_range")
    check.shares("hidden_dropout_prob", "attention_probs_dropout_prob")
    check.divisible("hidden_size", "num_attention_heads")
    window = _one_window(check, config.get("attention_window"), config.get("num_hidden_layers"))
    first_row = 0
    if not check.problems:
        first_row = {**_DEFAULTS, **config}["pad_token_id"] + 1
        rows = {**_DEFAULTS, **config}["max_position_embeddings"]
        if rows <= first_row:
            check.problems.append(
                f"max_position_embeddings={rows} must be more than pad_token_id + 1 = {first_row}, "
                "the row of the first token"
            )
    check.end(path)
    config = {**_DEFAULTS, **config}
    options = {"window": window // 2, "num_global": num_global}
    arguments = {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["num_hidden_layers"],
        "num_heads": config["num_attention_heads"],
        "hidden_dim": config["hidden_size"],
        "intermediate_dim": config["intermediate_size"],
        "position": "absolute",
        "dropout": float(config["hidden_dropout_prob"]),
        "max_sequence_length": config["max_position_embeddings"] - first_row,
        "num_segments": config["type_vocab_size"] if config["type_vocab_size"] > 1 else 0,
        "initializer_range": float(config["initializer_range"]),
        "layer_norm_epsilon": float(config["layer_norm_eps"]),
        "attention_pattern": "sliding_window",
        "pattern_options": options | ({"separate_global": True} if num_global else {}),
    }
    notes = [
        *one_rate(config, "hidden_dropout_prob", "attention_probs_dropout_prob"),
        f"rows 0 to {first_row - 1} of the position table, which stand for padding, are left out: "
        f"the first token has row {first_row}",
        *not_looked_at(config, _DEFAULTS, _SIZES, _FIXED, WITHOUT_EFFECT, _WITHOUT_EFFECT),
    ]
    if num_global:
        count = "the first token is" if num_global == 1 else f"the first {num_global} tokens are"
        notes.append(f"{count} global in every row, with the projections for global tokens")
    return arguments, first_row, notes


def _one_window(check, given, num_layers):
    """Returns the window of all layers; notes what is wrong with it."""
    windows = given if isinstance(given, list) else [given]
    if given is None:
        check.problems.append("attention_window is missing")
    elif not windows or not all(is_integer(w) and w > 0 and w % 2 == 0 for w in windows):
        check.problems.append(
            f"attention_window must be even integers > 0, tokens to both sides, not {given!r}"
        )
    elif isinstance(given, list) and len(given) != num_layers:
        check.problems.append(
            f"attention_window must have a number for each of {num_layers} layers, not {len(given)}"
        )
    elif len(set(windows)) > 1:
        check.problems.append(
            f"attention_window={given!r}: windows that differ between layers cannot be converted"
        )
    return windows[0] if windows else None


def config_of(backbone, special, has_head):
    """Returns the content of `config.json` for a model of ours.

    Args:
        backbone: a `TupeBackbone` that Longformer can be.
        special: dictionary of `pad_token_id`, `bos_token_id`, `eos_token_id`, `sep_token_id`.
        has_head: whether a masked-LM head belongs to the model.
    """
    options = backbone.pattern_options
    return {
        "architectures": ["LongformerForMaskedLM" if has_head else "LongformerModel"],
        "attention_probs_dropout_prob": backbone.dropout,
        "attention_window": [2 * options["window"]] * backbone.num_layers,
        "hidden_act": "gelu",
        "hidden_dropout_prob": backbone.dropout,
        "hidden_size": backbone.hidden_dim,
        "initializer_range": backbone.initializer_range,
        "intermediate_size": backbone.intermediate_dim,
        "layer_norm_eps": backbone.layer_norm_epsilon,
        "max_position_embeddings": backbone.max_sequence_length + special["pad_token_id"] + 1,
        "model_type": "longformer",
        "num_attention_heads": backbone.num_heads,
        "num_hidden_layers": backbone.num_layers,
        **special,
        "torch_dtype": backbone.dtype_policy.variable_dtype,
        "type_vocab_size": backbone.num_segments or 1,
        "vocab_size": backbone.vocabulary_size,
    }
