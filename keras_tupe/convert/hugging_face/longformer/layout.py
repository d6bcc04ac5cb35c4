"""Where Hugging Face's Longformer keeps the weights: as BERT, with another head and more."""

from keras_tupe.convert.bert.layout import (
    BIAS_OF_HEADS,
    INTO_HEADS,
    dense,
    hugging_face_layout,
    lm_head,
)

BIAS = "lm_head.bias"
GLOBAL_SIDES = ("query_global", "key_global", "value_global")


def longformer_layout(num_layers):
    """Returns where Longformer keeps our weights, without the prefix `longformer.`.

    Args:
        num_layers: number of blocks.

    Returns:
        Dictionary: path of our weight -> `Place`.
    """
    places = hugging_face_layout(num_layers, "absolute")
    for index in range(num_layers):
        for side in GLOBAL_SIDES:
            ours = f"global_{side.removesuffix('_global')}"
            places |= dense(
                f"block_{index}/attention/{ours}",
                f"encoder.layer.{index}.attention.self.{side}",
                INTO_HEADS,
                BIAS_OF_HEADS,
            )
    return {**places, **lm_head()}
