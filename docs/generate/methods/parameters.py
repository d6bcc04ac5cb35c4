"""What the methods of the two papers add to an encoder: formulas, and counts of built layers."""

from docs.generate.methods import layers
from keras_tupe import positions
from training.command.report import table

# (method, options, what it adds): L layers, H heads of width d, D = H d, n tokens, clip k.
FORMULAS = (
    ("absolute", {}, "n*D"),
    ("bert_r", {}, "n*D + 32*H"),
    ("bert_ad", {}, "2*D*D + n*D + 2*D"),
    ("tupe_a_tied_cls", {}, "2*D*D + n*D + 2*D"),
    ("tupe_a", {}, "2*D*D + n*D + 4*D"),
    ("tupe_r", {}, "2*D*D + n*D + 4*D + 32*H"),
    ("xlnet", {}, "L*(D*D + 2*D)"),
    ("shaw", {}, "L*H*(2*n - 1)*d"),
    ("shaw", {"share_heads": True}, "L*(2*n - 1)*d"),
    ("qkr_1", {}, "L*H*n"),
    ("qkr_2", {}, "L*H*(2*n - 1)"),
    ("qkr_3", {}, "L*H*(2*n - 1)*d"),
    ("qkr_4", {}, "L*H*(2*n - 1)*d"),
    ("qkr_4", {"share_heads": True}, "L*(2*n - 1)*d"),
    ("qkr_4", {"k": 64}, "L*H*(2*k + 1)*d"),
)


def parameters():
    """Returns the table, counted at BERT-base's size; a ValueError if a formula is wrong."""
    rows = []
    for name, options, formula in FORMULAS:
        for size, blocks, dims, added in layers.added_parameters(positions.get(name), options):
            sizes = {"L": blocks, "H": dims.num_heads, "d": dims.key_dim, "D": dims.hidden_dim}
            expected = eval(formula, {"n": layers.LENGTH, **options, **sizes})  # of this file
            if expected != added:
                raise ValueError(
                    f"The formula of {name!r} with {options} must give the parameters of its "
                    f"layers, {added} of size {size!r}. Received: {formula}, {expected}"
                )
        words = ", ".join([f"`{name}`", *(f"`{key}={value}`" for key, value in options.items())])
        shown = formula.replace("D*D", "D^2").replace("*", r"\,")
        rows.append([words, f"${shown}$", f"{added:,}", f"{4 * added / 2**20:.2f} MiB"])
    return table(["method", "parameters", "of BERT-base", "in float32"], rows, right=(2, 3))
