"""BARTs of Hugging Face."""

import numpy as np

from keras_tupe.convert.bert.fill import fill
from keras_tupe.convert.hugging_face.bart.config import read_config
from keras_tupe.convert.hugging_face.bart.layout import (
    COPIES,
    LOGITS_BIAS,
    WORDS,
    bart_layout,
    name_embedding,
)
from keras_tupe.convert.hugging_face.released import (
    checked_folder,
    left_out,
    plain_names,
    rounding,
)
from keras_tupe.convert.hugging_face.weights import read_hf_weights
from keras_tupe.convert.tokenizer_files import BART, read_vocabulary
from keras_tupe.models import (
    TupeSeq2SeqBackbone,
    TupeSeq2SeqLM,
    TupeSeq2SeqLMPreprocessor,
)
from keras_tupe.models.presets.size_check import check_sizes

_HEAD = "the head of a task; fine-tune a new one"
_CONSTANT = "a constant, not a weight"
_DROPPED = {
    "classification_head.": _HEAD,
    "qa_outputs.": _HEAD,
    "encoder.version": _CONSTANT,
    "decoder.version": _CONSTANT,
    LOGITS_BIAS: "zeros, which change nothing",
}


def from_hf_bart(folder, dtype=None):
    """Returns a model of pairs with the weights of a Hugging Face BART, and what became of them.

    The model has post-LN blocks, absolute positions with a table for each side, a layer
    normalization of the embeddings, and one token embedding for both sides and the output.

    `vocab.json` and `merges.txt`, if they are there, become the tokenizer of a preprocessor for
    rows of the full length, whose targets begin as `decoder_start_token_id` says: with `</s>` and
    `<s>`, as in all released ones, or with `<s>` alone; unless the folder's files ask for something
    that ours does not do. The report says what then, and the model takes ids only.

    Differences from the source: one dropout rate everywhere, and none behind the activation or of
    whole layers. The first two rows of the position tables, which no token has, are left out.
    Settings of generation, such as the number of beams, are not taken over.

    Args:
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Returns:
        `(model, report)`: a `TupeSeq2SeqLM` and a `Report`. Heads of other tasks are dropped.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming all that is not supported, missing, left over or of another shape; if
            the output matrix is not the token embedding, or the bias of the logits is not zero; if
            the vocabulary has another size.
    """
    folder = checked_folder(folder)
    arguments, starts_with_end, notes = read_config(folder / "config.json")
    tokenizer, more = read_vocabulary(folder, arguments["vocabulary_size"], BART)
    names, found = plain_names(read_hf_weights(folder), "model.")
    name_embedding(names, found)
    both = arguments["num_layers"] + arguments["num_decoder_layers"]
    shapes = [value.shape for value in found.values()]
    check_sizes({**arguments, "num_layers": both}, shapes, repr(str(folder)), slack=2)
    _check_no_bias(names, found)
    dropped = left_out(found, dict.fromkeys(COPIES, WORDS), _DROPPED)
    backbone = TupeSeq2SeqBackbone(**arguments, dtype=dtype)
    preprocessor = None
    if tokenizer is not None:
        preprocessor = TupeSeq2SeqLMPreprocessor(
            tokenizer,
            encoder_sequence_length=backbone.max_sequence_length,
            decoder_sequence_length=backbone.max_sequence_length,
            decoder_starts_with_end=starts_with_end,
        )
    model = TupeSeq2SeqLM(backbone, preprocessor)
    layout = bart_layout(backbone.num_layers, backbone.num_decoder_layers)
    notes = (*notes, *more, *rounding(found, backbone))
    return model, fill(model, found, layout, names, dropped, notes)


def _check_no_bias(names, found):
    """Raises `ValueError` for a bias of the logits that would be lost."""
    bias = found.get(LOGITS_BIAS)
    if bias is not None and np.any(bias != 0):
        raise ValueError(
            "The output layer has no bias here: that of the logits must be zeros, as in the "
            f"released models. Received: {names[LOGITS_BIAS]!r}, of whose {bias.size:,} numbers "
            f"{np.count_nonzero(bias):,} are not zero"
        )
