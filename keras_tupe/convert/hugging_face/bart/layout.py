"""Where Hugging Face's BART keeps the weights."""

import numpy as np

from keras_tupe.convert.bert.layout import (
    BIAS_OF_HEADS,
    FROM_HEADS,
    INTO_HEADS,
    SAME,
    Form,
    Place,
    dense,
    norm,
)

WORDS = "shared.weight"
# Copies of the token embedding, in the order in which one of them stands for it.
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
LOGITS_BIAS = "final_logits_bias"
# The position of padding in fairseq, and one more: no token has these rows.
UNUSED_ROWS = 2


def _behind_unused_rows(array, heads):
    rows = np.zeros((UNUSED_ROWS, array.shape[1]), array.dtype)
    return np.concatenate([rows, array])


_POSITIONS = Form(lambda array, heads: array[UNUSED_ROWS:], _behind_unused_rows)


def bart_layout(num_layers, num_decoder_layers):
    """Returns where BART keeps our weights, without the prefix `model.`.

    Args:
        num_layers: number of blocks of the encoder.
        num_decoder_layers: number of blocks of the decoder.

    Returns:
        Dictionary: path of our weight, as in `weights_by_path` -> `Place`.
    """
    places = {"token_embedding/embeddings": Place(WORDS, SAME)}
    for side, count in (("encoder", num_layers), ("decoder", num_decoder_layers)):
        places[f"{side}/position_embedding/embeddings"] = Place(
            f"{side}.embed_positions.weight", _POSITIONS
        )
        places |= norm(f"{side}/embeddings_layer_norm", f"{side}.layernorm_embedding")
        for index in range(count):
            places |= _block(side, f"{side}/block_{index}", f"{side}.layers.{index}")
    return places


def name_embedding(names, found):
    """Gives the token embedding its one name, in place, if a file has none but a copy's.

    Args:
        names, found: dictionaries from plain names to names in the file, and to arrays.
    """
    other = next((name for name in COPIES if name in found), None)
    if WORDS not in found and other is not None:
        for each in (names, found):
            each[WORDS] = each.pop(other)


def _block(side, ours, theirs):
    attentions = {"attention": "self_attn"}
    if side == "decoder":
        attentions["cross_attention"] = "encoder_attn"
    places = {}
    for name, their_name in attentions.items():
        for part, their_part in (("query", "q"), ("key", "k"), ("value", "v")):
            places |= dense(
                f"{ours}/{name}/{part}",
                f"{theirs}.{their_name}.{their_part}_proj",
                INTO_HEADS,
                BIAS_OF_HEADS,
            )
        places |= dense(f"{ours}/{name}/output", f"{theirs}.{their_name}.out_proj", FROM_HEADS)
        places |= norm(f"{ours}/{name}_layer_norm", f"{theirs}.{their_name}_layer_norm")
    places |= dense(f"{ours}/feedforward_intermediate", f"{theirs}.fc1")
    places |= dense(f"{ours}/feedforward_output", f"{theirs}.fc2")
    return places | norm(f"{ours}/feedforward_layer_norm", f"{theirs}.final_layer_norm")
