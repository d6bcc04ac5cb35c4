"""Arguments of ours from the config.json of a BART, and the other way."""

from keras_tupe.convert.hugging_face.bart.layout import UNUSED_ROWS
from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.config_check import (
    WITHOUT_EFFECT,
    ConfigCheck,
    not_looked_at,
    one_rate,
)
from keras_tupe.convert.hugging_face.encoders._encoder import ACTIVATIONS
from keras_tupe.convert.hugging_face.trunk_config import NO_DECODER
from keras_tupe.layers._checks import is_integer

LAYER_NORM_EPSILON = 1e-5  # of its code; no entry says another
# Both sides have one number of heads and one inner width here.
_EQUAL = (
    ("decoder_attention_heads", "encoder_attention_heads"),
    ("decoder_ffn_dim", "encoder_ffn_dim"),
)
_SIZES = (
    *("vocab_size", "d_model", "encoder_layers", "decoder_layers", "max_position_embeddings"),
    *(name for pair in _EQUAL for name in pair),
)
_RATES = ("dropout", "attention_dropout")
# Rates that are 0 here, whatever they are there.
_NO_RATES = ("activation_dropout", "encoder_layerdrop", "decoder_layerdrop")
_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
# What BART's configuration has where a file leaves it out.
_DEFAULTS = {
    "activation_function": "gelu",
    "dropout": 0.1,
    **dict.fromkeys(("attention_dropout", *_NO_RATES), 0.0),
    "init_std": 0.02,
    "scale_embedding": False,
    **_IDS,
}
_TASKS = ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering")
_ARCHITECTURES = tuple(f"Bart{name}" for name in ("Model", *_TASKS))
_FIXED = {
    **NO_DECODER,
    "is_encoder_decoder": (True, "a side without the other"),
    # of early files; the code has them as here ever since
    "add_bias_logits": (False, "a bias of the logits"),
    "add_final_layer_norm": (False, "a last layer normalization"),
    "extra_pos_embeddings": (UNUSED_ROWS, "another number of unused rows of the position table"),
    "normalize_before": (False, "pre-LN blocks"),
    "normalize_embedding": (True, "embeddings that are not normalized"),
    "static_position_embeddings": (False, "sinusoids"),
}
_WITHOUT_EFFECT = {
    *("num_hidden_layers", "classif_dropout", "_num_labels", "forced_bos_token_id"),
    *("force_bos_token_to_be_generated", "prefix", "save_step"),
}
_GENERATION = (
    *("num_beams", "early_stopping", "length_penalty", "max_length", "min_length"),
    *("no_repeat_ngram_size", "forced_eos_token_id", "do_sample", "temperature", "top_k", "top_p"),
    *("repetition_penalty", "bad_words_ids", "num_return_sequences", "num_beam_groups"),
)


def read_config(path):
    """Returns the arguments of `TupeSeq2SeqBackbone` that a configuration asks for, and more.

    Args:
        path: `config.json` of a Hugging Face BART.

    Returns:
        `(arguments, starts_with_end, notes)`: a dictionary, whether targets have the end token
        before their start token, and sentences for the report.

    Raises:
        ValueError: naming all that our model cannot do.
        FileNotFoundError: if there is no such file.
    """
    config = read_json(path)
    check = ConfigCheck(config)
    check.model_type("bart")
    check.architectures(_ARCHITECTURES)
    check.fixed(_FIXED)
    check.expect(
        "activation_function",
        lambda value: isinstance(value, str) and value in ACTIVATIONS,
        f"one of {list(ACTIVATIONS)}",
    )
    check.expect("scale_embedding", lambda value: isinstance(value, bool), "true or false")
    check.integers(required=_SIZES)
    check.numbers("init_std")
    check.shares(*_RATES, *_NO_RATES)
    for name in _IDS:
        check.expect(name, lambda value: is_integer(value) and value >= 0, "an integer >= 0")
    for name, other in _EQUAL:
        if config.get(name) != config.get(other):
            check.problems.append(
                f"{name}={config.get(name)!r} must be {other}={config.get(other)!r}: both sides "
                "have one number here"
            )
    check.divisible("d_model", "encoder_attention_heads")
    config = {**_DEFAULTS, **config}
    start, end, first = (config[f"{x}_token_id"] for x in ("decoder_start", "eos", "bos"))
    if start not in (end, first):
        check.problems.append(
            f"decoder_start_token_id={start!r} must be eos_token_id={end!r} or "
            f"bos_token_id={first!r}, with which targets begin here"
        )
    check.end(path)
    arguments = {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["encoder_layers"],
        "num_heads": config["encoder_attention_heads"],
        "hidden_dim": config["d_model"],
        "intermediate_dim": config["encoder_ffn_dim"],
        "position": "absolute",
        "num_decoder_layers": config["decoder_layers"],
        "dropout": float(config["dropout"]),
        "max_sequence_length": config["max_position_embeddings"],
        "initializer_range": float(config["init_std"]),
        "layer_norm_epsilon": LAYER_NORM_EPSILON,
        "activation": ACTIVATIONS[config["activation_function"]],
        "scale_embeddings": config["scale_embedding"],
    }
    return arguments, start == end, _notes(config)


def _notes(config):
    notes = [
        f"rows 0 and 1 of both position tables, which no token has, are left out: the first token "
        f"has row {UNUSED_ROWS}",
        *one_rate(config, *_RATES),
    ]
    rates = [f"{name}={config[name]}" for name in _NO_RATES if config[name]]
    if rates:
        notes.append(f"{' and '.join(rates)} not used: there is no such rate here (training only)")
    given = [f"{name}={config[name]}" for name in _GENERATION if config.get(name) is not None]
    if given:
        notes.append(
            "settings of generation are not taken over; `compile(sampler=...)` says how texts are "
            f"written: {', '.join(given)}"
        )
    known = (_DEFAULTS, _SIZES, _FIXED, WITHOUT_EFFECT, _WITHOUT_EFFECT, _GENERATION)
    return [*notes, *not_looked_at(config, *known)]


def config_of(backbone, special, starts_with_end, has_head):
    """Returns the content of `config.json` for a model of ours.

    Args:
        backbone: a `TupeSeq2SeqBackbone` that BART can be.
        special: dictionary of the entries about ids of special tokens.
        starts_with_end: whether targets have the end token before their start token.
        has_head: whether vocabulary logits belong to the model.
    """
    first, end = special["bos_token_id"], special["eos_token_id"]
    return {
        "activation_dropout": 0.0,
        "activation_function": next(
            name for name, ours in ACTIVATIONS.items() if ours == backbone.activation
        ),
        "architectures": ["BartForConditionalGeneration" if has_head else "BartModel"],
        "attention_dropout": backbone.dropout,
        "bos_token_id": first,
        "d_model": backbone.hidden_dim,
        "decoder_attention_heads": backbone.num_heads,
        "decoder_ffn_dim": backbone.intermediate_dim,
        "decoder_layerdrop": 0.0,
        "decoder_layers": backbone.num_decoder_layers,
        "decoder_start_token_id": end if starts_with_end else first,
        "dropout": backbone.dropout,
        "encoder_attention_heads": backbone.num_heads,
        "encoder_ffn_dim": backbone.intermediate_dim,
        "encoder_layerdrop": 0.0,
        "encoder_layers": backbone.num_layers,
        "eos_token_id": end,
        "forced_bos_token_id": first if starts_with_end else None,
        "forced_eos_token_id": end,
        "init_std": backbone.initializer_range,
        "is_encoder_decoder": True,
        "max_position_embeddings": backbone.max_sequence_length,
        "model_type": "bart",
        "num_hidden_layers": backbone.num_layers,
        "pad_token_id": special["pad_token_id"],
        "scale_embedding": backbone.scale_embeddings,
        "torch_dtype": backbone.dtype_policy.variable_dtype,
        "vocab_size": backbone.vocabulary_size,
    }
