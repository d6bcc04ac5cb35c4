"""Arguments of ours from the config.json of a Longformer, and the other way."""

from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.config_check import ConfigCheck
from keras_tupe.convert.hugging_face.padding_rows import check_rows, rows_note
from keras_tupe.convert.hugging_face.trunk_config import (
    DEFAULTS,
    NO_DECODER,
    check_trunk,
    trunk_arguments,
    trunk_entries,
    trunk_notes,
)
from keras_tupe.layers._checks import is_integer

# What Longformer's configuration has where a file leaves it out.
_DEFAULTS = {**DEFAULTS, "pad_token_id": 1}
_TASKS = (
    *("MaskedLM", "SequenceClassification", "MultipleChoice", "TokenClassification"),
    "QuestionAnswering",
)
_ARCHITECTURES = ("LongformerModel", *(f"LongformerFor{task}" for task in _TASKS))
_WITHOUT_EFFECT = {
    "attention_window",
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
    check.fixed(NO_DECODER)
    check.expect("hidden_act", lambda value: value == "gelu", "'gelu', the exact one")
    check.expect(
        "position_embedding_type", lambda value: value == "absolute", "'absolute' or left out"
    )
    check.expect("pad_token_id", lambda value: is_integer(value) and value >= 0, "an integer >= 0")
    check_trunk(check)
    window = _one_window(check, config.get("attention_window"), config.get("num_hidden_layers"))
    config = {**_DEFAULTS, **config}
    first_row = check_rows(check, config, config["pad_token_id"])
    check.end(path)
    options = {"window": window // 2, "num_global": num_global}
    arguments = {
        **trunk_arguments(config),
        "position": "absolute",
        "max_sequence_length": config["max_position_embeddings"] - first_row,
        "num_segments": config["type_vocab_size"] if config["type_vocab_size"] > 1 else 0,
        "attention_pattern": "sliding_window",
        "pattern_options": options | ({"separate_global": True} if num_global else {}),
    }
    notes = [
        rows_note(first_row),
        *trunk_notes(config, _DEFAULTS, NO_DECODER, _WITHOUT_EFFECT),
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
        **trunk_entries(backbone),
        "architectures": ["LongformerForMaskedLM" if has_head else "LongformerModel"],
        "attention_window": [2 * options["window"]] * backbone.num_layers,
        "hidden_act": "gelu",
        "max_position_embeddings": backbone.max_sequence_length + special["pad_token_id"] + 1,
        "model_type": "longformer",
        **special,
        "type_vocab_size": backbone.num_segments or 1,
    }
