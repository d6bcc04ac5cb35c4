"""Arguments of ours from the config.json of a GPT-2, and the other way."""

from keras_tupe.convert.hugging_face.config import read_json
from keras_tupe.convert.hugging_face.config_check import (
    FIXED,
    WITHOUT_EFFECT,
    ConfigCheck,
    not_looked_at,
    one_rate,
)

# By name there; the first of those that are one function of ours is what we write.
ACTIVATIONS = {
    "gelu_new": "gelu_approximate",
    "gelu_pytorch_tanh": "gelu_approximate",
    "gelu_fast": "gelu_approximate",
    "gelu": "gelu",
}
_SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
_RATES = ("resid_pdrop", "embd_pdrop", "attn_pdrop")
# What GPT-2's configuration has where a file leaves it out.
_DEFAULTS = {
    "n_inner": None,
    "activation_function": "gelu_new",
    **dict.fromkeys(_RATES, 0.1),
    "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02,
}
_TASKS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_ARCHITECTURES = tuple(
    f"GPT2{name}" for name in ("LMHeadModel", "Model", "DoubleHeadsModel", *_TASKS)
)
_FIXED = {
    **FIXED,
    "scale_attn_weights": (True, "attention logits that are not divided by sqrt(head size)"),
    "scale_attn_by_inverse_layer_idx": (
        False,
        "attention logits divided by the number of the layer",
    ),
}
_WITHOUT_EFFECT = {
    *("n_ctx", "is_decoder"),
    "reorder_and_upcast_attn",  # our logits are in at least float32 anyway
    *("summary_activation", "summary_first_dropout", "summary_proj_to_labels"),
    *("summary_type", "summary_use_proj"),
}


def read_config(path):
    """Returns the arguments of `TupeBackbone` that a configuration asks for, and notes.

    Args:
        path: `config.json` of a Hugging Face GPT-2.

    Returns:
        `(arguments, notes)`: a dictionary, and sentences for the report.

    Raises:
        ValueError: naming all that our decoder cannot do.
        FileNotFoundError: if there is no such file.
    """
    config = read_json(path)
    check = ConfigCheck(config)
    check.model_type("gpt2")
    check.architectures(_ARCHITECTURES)
    check.fixed(_FIXED)
    check.expect(
        "activation_function",
        lambda value: isinstance(value, str) and value in ACTIVATIONS,
        f"one of {list(ACTIVATIONS)}",
    )
    if config.get("n_inner") is not None:
        check.integers("n_inner")
    check.integers(required=_SIZES)
    check.numbers("layer_norm_epsilon", "initializer_range")
    check.shares(*_RATES)
    check.divisible("n_embd", "n_head")
    check.end(path)
    config = {**_DEFAULTS, **config}
    arguments = {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["n_layer"],
        "num_heads": config["n_head"],
        "hidden_dim": config["n_embd"],
        "intermediate_dim": config["n_inner"] or 4 * config["n_embd"],
        "position": "absolute",
        "dropout": float(config["resid_pdrop"]),
        "max_sequence_length": config["n_positions"],
        "normalize_first": True,
        "initializer_range": float(config["initializer_range"]),
        "layer_norm_epsilon": float(config["layer_norm_epsilon"]),
        "attention_pattern": "causal",
        "activation": ACTIVATIONS[config["activation_function"]],
        "normalize_embeddings": False,
    }
    notes = [
        *one_rate(config, *_RATES),
        *not_looked_at(config, _DEFAULTS, _SIZES, _FIXED, WITHOUT_EFFECT, _WITHOUT_EFFECT),
    ]
    return arguments, notes


def config_of(backbone, end_id, has_head):
    """Returns the content of `config.json` for a model of ours.

    Args:
        backbone: a `TupeBackbone` that GPT-2 can be.
        end_id: id of the token that starts and ends texts.
        has_head: whether vocabulary logits belong to the model.
    """
    activation = next(name for name, ours in ACTIVATIONS.items() if ours == backbone.activation)
    return {
        "activation_function": activation,
        "architectures": ["GPT2LMHeadModel" if has_head else "GPT2Model"],
        "attn_pdrop": backbone.dropout,
        "bos_token_id": end_id,
        "embd_pdrop": backbone.dropout,
        "eos_token_id": end_id,
        "initializer_range": backbone.initializer_range,
        "layer_norm_epsilon": backbone.layer_norm_epsilon,
        "model_type": "gpt2",
        "n_embd": backbone.hidden_dim,
        "n_head": backbone.num_heads,
        "n_inner": backbone.intermediate_dim,
        "n_layer": backbone.num_layers,
        "n_positions": backbone.max_sequence_length,
        "resid_pdrop": backbone.dropout,
        "torch_dtype": backbone.dtype_policy.variable_dtype,
        "vocab_size": backbone.vocabulary_size,
    }
