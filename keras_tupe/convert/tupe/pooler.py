"""The pooler: in TUPE's released code, the first layer of a fine-tuned classification head."""

_HEADS = "classification_heads."
_DENSE = {"dense.weight", "dense.bias"}
_OUTPUT = {"out_proj.weight", "out_proj.bias"}
_PATHS = ("pooled_dense/kernel", "pooled_dense/bias")


def pooler_values(settings, weights):
    """Returns the pooler's values, and what of the classification heads has no place.

    Args:
        settings: `TupeSettings`.
        weights: dictionary: released name -> array.

    Returns:
        `(values, used, dropped, new)`: path of our weight -> array; the released names of these;
        other released name -> why it is left out; path of our weight -> why it has no value.
        Names that are no part of a classification head are in none of them.
    """
    heads = {}
    for name in weights:
        if name.startswith(_HEADS):
            head, _, part = name.removeprefix(_HEADS).partition(".")
            if part in _DENSE | _OUTPUT:
                heads.setdefault(head, set()).add(part)
    dropped = {
        f"{_HEADS}{head}.{part}": "the head of a task; fine-tune a new one"
        for head, parts in heads.items()
        for part in sorted(parts & _OUTPUT)
    }
    poolers = [head for head, parts in heads.items() if parts >= _DENSE]
    reason = _why_not(settings, weights, poolers)
    if reason is None:
        names = tuple(f"{_HEADS}{poolers[0]}.{part}" for part in ("dense.weight", "dense.bias"))
        kernel, bias = (weights[name] for name in names)
        return dict(zip(_PATHS, (kernel.T, bias), strict=True)), names, dropped, {}
    for head in poolers:
        dropped |= {f"{_HEADS}{head}.{part}": reason for part in sorted(_DENSE)}
    new = dict.fromkeys(_PATHS, f"{reason}; initialized at random")
    return {}, (), dropped, new


def _why_not(settings, weights, poolers):
    if not poolers:
        return "the checkpoint has no pooler"
    if len(poolers) > 1:
        return f"the checkpoint has {len(poolers)} classification heads, each with a pooler"
    if settings.pooler_activation != "tanh":
        return f"the checkpoint's pooler ends in {settings.pooler_activation}, ours in tanh"
    width = settings.hidden_dim
    bias, kernel = (weights[f"{_HEADS}{poolers[0]}.{part}"] for part in sorted(_DENSE))
    if bias.shape != (width,) or kernel.shape != (width, width):
        return "the checkpoint's pooler has another width than its encoder"
    if {bias.dtype.kind, kernel.dtype.kind} != {"f"}:
        return "the checkpoint's pooler is not made of real numbers"
    return None
