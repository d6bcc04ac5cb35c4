"""Where Hugging Face's Longformer keeps the weights: as BERT, with another head and more."""

from keras_tupe.convert.bert.layout import (
    BIAS_OF_HEADS,
    INTO_HEADS,
    SAME,
    Place,
    dense,
    hugging_face_layout,
    norm,
)

WORDS = "embeddings.word_embeddings.weight"
TABLE = "embeddings.position_embeddings.weight"
SEGMENTS = "embeddings.token_type_embeddings.weight"
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
    return {
        **places,
        **dense("mlm_head/dense", "lm_head.dense"),
        **norm("mlm_head/layer_norm", "lm_head.layer_norm"),
        "mlm_head/output_bias": Place(BIAS, SAME),
    }
