"""A whole attention pattern in one file: every n-th token of a window, as in dilated attention."""

from keras import ops

from keras_tupe.attention_patterns import AttentionPattern, Visible


def visible(layer, options):
    """Returns what the attention core is told: a window, and a further condition on i and j."""
    window, every = options["window"], options["every"]
    if not all(isinstance(x, int) and x >= 1 for x in (window, every)):
        raise ValueError(
            "`window` and `every` of the pattern 'dilated' must be integers >= 1. "
            f"Received: window={window!r}, every={every!r}"
        )
    reach = window * every

    def also(i, j):
        return ops.equal(ops.mod(j - i, every), 0)

    return Visible(reach, reach, also=also)


def allowed(i, j, length, layer, options):
    """The same in plain Python."""
    steps, rest = divmod(abs(j - i), options["every"])
    return rest == 0 and steps <= options["window"]


PATTERN = AttentionPattern(
    summary="a token attends to every n-th token of a window",
    source="Beltagy et al. 2020, Sec. 3.1 (dilated sliding window)",
    equation=r"j - i = n m \;\text{ with }\; |m| \le w",
    where={"w": "option `window`", "n": "option `every`", "m": "a number of steps"},
    options={"window": 4, "every": 2},
    option_meanings={
        "window": "How many tokens to each side a token sees.",
        "every": "How far these are from each other.",
    },
    other_options=({"every": 3}, {"window": 1}),
    allowed=allowed,
    visible=visible,
)
