"""Local attention: a window of tokens around each, some global tokens, some full layers."""

from keras_tupe import check
from keras_tupe.attention_patterns import AttentionPattern, Visible

_SMALLEST = {"window": 1, "num_global": 0, "every": 2}


def is_full(layer, options):
    """Returns whether a layer is one of those without a window."""
    every = options["every"]
    return every is not None and layer % every == 0


def visible(layer, options):
    """Returns what a layer sees."""
    _check(options)
    causal = options["causal"]
    if is_full(layer, options):
        return Visible(right=0) if causal else None
    return Visible(
        options["window"],
        0 if causal else options["window"],
        options["num_global"],
        options["separate_global"],
    )


def allowed(i, j, length, layer, options):
    """Keys of the window, of global tokens, and all keys for global tokens and full layers."""
    if options["causal"] and j > i:
        return False
    if options["every"] is not None and layer % options["every"] == 0:
        return True
    return min(i, j) < options["num_global"] or abs(j - i) <= options["window"]


def _check(options):
    for name, smallest in _SMALLEST.items():
        if name != "every" or options[name] is not None:
            check.integer(name, options[name], smallest)
    for name in ("causal", "separate_global"):
        check.boolean(name, options[name])
    if options["separate_global"] and (options["causal"] or not options["num_global"]):
        raise ValueError(
            "`separate_global` gives global tokens projections of their own to see all tokens "
            "with: it needs `num_global` >= 1 and causal=False. "
            f"Received: causal={options['causal']}, num_global={options['num_global']}"
        )


PATTERN = AttentionPattern(
    summary="a token attends to those near it, and to and from global tokens",
    source="Beltagy et al. 2020, Sec. 3.1 (Longformer); Warner et al. 2024 (`every`)",
    equation=r"|j - i| \le w \;\text{ or }\; i < g \;\text{ or }\; j < g",
    where={
        "w": "option `window`",
        "g": "option `num_global`",
    },
    options={
        "window": 256,
        "causal": False,
        "num_global": 0,
        "every": None,
        "separate_global": False,
    },
    option_meanings={
        "window": "How many tokens to each side a token sees, half of Longformer's "
        "`attention_window`.",
        "causal": "Whether it sees none of those after it.",
        "num_global": "How many tokens at the beginning see all tokens and are seen by all: 1 for "
        "[CLS].",
        "every": "Layers 0, `every`, 2 `every`, ... have no window, as in ModernBERT; `None`: all "
        "have.",
        "separate_global": "Whether global tokens see with projections of their own, as in "
        "Longformer.",
    },
    other_options=(
        {"window": 3},
        {"window": 3, "num_global": 1},
        {"window": 2, "num_global": 2, "separate_global": True},
        {"window": 3, "causal": True},
        {"window": 3, "causal": True, "num_global": 1},
        {"window": 3, "every": 2},
    ),
    allowed=allowed,
    visible=visible,
)
