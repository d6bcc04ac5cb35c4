"""Words about all methods: the symbols of their equations, and the options that many have.

A record explains in `where` and `option_meanings` only what is not here.
"""

# LaTeX -> meaning, in Markdown with dollarmath. Row vectors; [CLS] is position 0.
SYMBOLS = {
    r"s_{ij}": "attention logit of query position $i$ and key position $j$ in one head, counted "
    "from 0; softmax over $j$ makes the attention scores",
    r"q_i": "query of position $i$ in this head, a learned projection of the vector $x_i$ that the "
    "attention receives: $q_i = x_i W^Q + b^Q$",
    r"k_j": "key of position $j$ in this head, likewise: $k_j = x_j W^K + b^K$",
    r"d": "size of a head",
    r"D": "width of the hidden states",
    r"p_i": "learned vector of position $i$, the same in all blocks and heads",
    r"p_j": "learned vector of position $j$",
    r"\mathrm{LN}": "layer normalization, shared by all positions",
    r"U^Q": "query projection of the positions: one per head, shared by all blocks",
    r"U^K": "key projection of the positions: one per head, shared by all blocks",
    r"\mathrm{reset}_\theta": r"frees [CLS] from what it is given: $\theta_1$ in row $i = 0$, "
    r"$\theta_2$ in the rest of column $j = 0$, unchanged elsewhere",
    r"\theta_1": "learned logit from [CLS] to every token, one per head",
    r"\theta_2": "learned logit from every other token to [CLS], one per head",
    r"b_{\mathrm{bucket}(j - i)}": "learned scalar per head and bucket of distances, shared by all "
    "blocks, not scaled",
    r"\mathrm{clip}": r"limits a distance: $\mathrm{clip}(e, m) = \max(-m, \min(m, e))$",
}

# Option -> meaning, in Markdown, where it is the same in every method that has the option.
OPTION_MEANINGS = {
    "cls": '`"tied"`: [CLS] has the position terms of position 0, like any token. `"untied"`: it '
    "is freed from them, and gets learned terms of its own for its row and its column.",
    "variant": '`"paper"`: as the paper prints it. `"released"`: as the authors\' code does it, '
    "which converted checkpoints need.",
}
