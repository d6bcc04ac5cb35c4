"""The five patterns of positional heads, named by a rule."""

import numpy as np

from keras_tupe.analysis._checks import square_matrices

# The patterns that `name_patterns` tells apart, in the order in which it tries them.
ATTENTION_PATTERNS = (
    "globally but not locally",
    "locally",
    "broadly",
    "the previous positions",
    "the next positions",
)
GLOBALLY, LOCALLY, BROADLY, PREVIOUS, NEXT = ATTENTION_PATTERNS

WINDOW = 4  # words to each side that count as near; an eighth of the words if that is less
SIDE_LEAD = 1 / 3  # of all weight: by how much one side outweighs the other, as 2 : 1 does
LOCAL_SHARE = 0.25  # of the weight that a uniform row has outside the window: moved inside
AVOIDED_SHARE = 0.5  # of the weight that a uniform row has inside the window: what is left of it
FEWEST_WORDS = 4


def name_patterns(matrices, is_seen=None):
    """Returns the name of each head's pattern, one of `ATTENTION_PATTERNS`.

    The patterns are those that Ke et al. (2021, Sec. 4.4) see in TUPE's heads. They give no rule;
    this one is ours. It looks at where a word attends if position alone decides: at the softmax
    over keys of the position logits, with the row and the column of [CLS] left out. Averaged over
    all words i,

        near  = weight of the keys with |j - i| <= w;   left: with j < i;   right: with j > i
        even  = what near is when every key has the same weight
        lean  = left - right, less what that is when every key has the same weight
        w     = min(4, words // 8), at least 1

    the first of these that is true names the head:

        the previous positions     lean >= 1 / 3
        the next positions         lean <= -1 / 3
        locally                    near - even >= 0.25 (1 - even)
        globally but not locally   near <= 0.5 even
        broadly                    otherwise

    The numbers are the constants `SIDE_LEAD`, `LOCAL_SHARE`, `AVOIDED_SHARE` and `WINDOW`. So
    "broadly" is also the name of a head without preference, as at initialization. Where words do
    not see all others, as in a causal model, weights are over the keys that they see.

    Args:
        matrices: position logits `(heads, length, length)` with [CLS] first and four words or more.
            Constants of rows do not matter, the scale does.
        is_seen: booleans `(length, length)`, which key each query sees, itself at least. Defaults
            to all.

    Example:
        >>> position = np.arange(33)
        >>> distance = position[None, :] - position[:, None]
        >>> name_patterns(np.stack([-abs(distance), 0.2 * distance, 0 * distance]))
        ['locally', 'the next positions', 'broadly']

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """
    matrices = square_matrices(matrices, smallest=FEWEST_WORDS + 1)
    logits = matrices[:, 1:, 1:].astype("float64")
    words = logits.shape[1]
    seen = np.ones((words, words), bool) if is_seen is None else np.asarray(is_seen)[1:, 1:]
    logits = np.where(seen, logits, -np.inf)
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    place = np.arange(words)
    distance = place[None, :] - place[:, None]
    is_near = np.abs(distance) <= max(1, min(WINDOW, words // 8))
    areas = np.stack([is_near, distance < 0, distance > 0])
    shares = np.einsum("hts,ats->ha", scores, areas) / words
    even, *sides = np.einsum("ts,ats->a", seen / seen.sum(axis=-1, keepdims=True), areas) / words
    usual = sides[0] - sides[1]
    names = []
    for near, left, right in shares:
        lean = left - right - usual
        rules = {
            PREVIOUS: lean >= SIDE_LEAD,
            NEXT: lean <= -SIDE_LEAD,
            LOCALLY: near - even >= LOCAL_SHARE * (1 - even),
            GLOBALLY: near <= AVOIDED_SHARE * even,
            BROADLY: True,
        }
        names.append(next(name for name, holds in rules.items() if holds))
    return names
