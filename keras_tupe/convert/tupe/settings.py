"""The settings that TUPE's released code keeps in its checkpoints."""

import dataclasses

_SIZES = {  # our names, theirs
    "num_layers": "encoder_layers",
    "num_heads": "encoder_attention_heads",
    "hidden_dim": "encoder_embed_dim",
    "intermediate_dim": "encoder_ffn_embed_dim",
}
_ONLY = {  # what other values mean has no place in our model
    "activation_fn": ("gelu", "gelu"),  # name: (the only value, the default of their code)
    "encoder_normalize_before": (False, False),
    "embedding_normalize": (True, False),
}
_RATES = {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.0}
_MAX_SIZE = 2**31


@dataclasses.dataclass(frozen=True)
class TupeSettings:
    """What a released TUPE encoder is made of.

    Attributes:
        num_layers: encoder blocks.
        num_heads: attention heads.
        hidden_dim: width.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: positions, in tokens.
        has_relative_bias: TUPE-R if true, else TUPE-A.
        dropout: rate in [0, 1), of embeddings and sublayer outputs.
        attention_dropout: rate in [0, 1).
        activation_dropout: rate in [0, 1), inside the feed-forward networks.
        pooler_activation: name of the function behind the dense layer of a classification head.
    """

    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int
    max_sequence_length: int
    has_relative_bias: bool
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.0
    pooler_activation: str = "tanh"

    @property
    def position(self):
        """Name of the positional method."""
        return "tupe_r" if self.has_relative_bias else "tupe_a"


def tupe_settings(args, source):
    """Returns the settings in the `args` of a checkpoint.

    Args:
        args: dictionary, the attributes of fairseq's `args`.
        source: how messages name the checkpoint.

    Returns:
        A `TupeSettings`.

    Raises:
        ValueError: listing all settings that are missing, impossible or not supported.
    """
    # `max_positions` is the number of tokens per sample unless it is given.
    theirs = {**_SIZES, "max_sequence_length": "max_positions"}
    if args.get("max_positions") is None:
        theirs["max_sequence_length"] = "tokens_per_sample"
    sizes = {ours: args.get(name) for ours, name in theirs.items()}
    rates = {name: args.get(name, default) for name, default in _RATES.items()}
    has_relative_bias = args.get("rel_pos", False)
    problems = [
        f"{theirs[ours]}={_shown(size)}, expected an integer >= 1"
        for ours, size in sizes.items()
        if type(size) is not int or not 1 <= size < _MAX_SIZE
    ]
    if not problems and sizes["hidden_dim"] % sizes["num_heads"]:
        problems.append(
            f"encoder_embed_dim={sizes['hidden_dim']}, which is not divisible by "
            f"encoder_attention_heads={sizes['num_heads']}"
        )
    problems += [
        f"{name}={_shown(rate)}, expected a rate in [0, 1)"
        for name, rate in rates.items()
        if type(rate) not in (int, float) or not 0 <= rate < 1
    ]
    problems += [
        f"{name}={_shown(args.get(name, default))}, of which only {only!r} is supported"
        for name, (only, default) in _ONLY.items()
        if args.get(name, default) != only
    ]
    if type(has_relative_bias) is not bool:
        problems.append(f"rel_pos={_shown(has_relative_bias)}, expected True or False")
    if problems:
        raise ValueError(
            "The settings of the checkpoint do not describe a model that TUPE's released code "
            f"made: {'; '.join(problems)}. Received: {source}"
        )
    pooler = args.get("pooler_activation_fn", "tanh")
    return TupeSettings(
        **sizes, **rates, has_relative_bias=has_relative_bias, pooler_activation=_shown(pooler)
    )


def _shown(value):
    # An object of the file may contain itself, or be enormous.
    if type(value) is str:
        return value[:100]
    is_plain = value is None or type(value) in (bool, float) or _is_short_integer(value)
    return str(value) if is_plain else f"({type(value).__name__})"


def _is_short_integer(value):
    return type(value) is int and abs(value) < 2**63
