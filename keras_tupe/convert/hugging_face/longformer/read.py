"""Longformers of Hugging Face."""

from keras_tupe.convert.bert.fill import fill
from keras_tupe.convert.bert.layout import WORDS
from keras_tupe.convert.hugging_face.longformer.config import read_config
from keras_tupe.convert.hugging_face.longformer.layout import (
    BIAS,
    GLOBAL_SIDES,
    longformer_layout,
)
from keras_tupe.convert.hugging_face.padding_rows import cut_rows
from keras_tupe.convert.hugging_face.released import (
    checked_folder,
    left_out,
    name_bias,
    plain_names,
    rounding,
)
from keras_tupe.convert.hugging_face.weights import read_hf_weights
from keras_tupe.convert.tokenizer_files import LONGFORMER, preprocessor_of, read_vocabulary
from keras_tupe.layers._checks import is_integer
from keras_tupe.models import TupeBackbone, TupeMaskedLM
from keras_tupe.models.presets.size_check import check_sizes

_TIED = {"lm_head.decoder.weight": WORDS, "lm_head.decoder.bias": BIAS}
_DROPPED = {
    "embeddings.position_ids": "a constant, not a weight",
    "classifier.": "the head of a task; fine-tune a new one",
    "qa_outputs.": "the head of a task; fine-tune a new one",
}


def from_hf_longformer(folder, dtype=None, num_global=1):
    """Returns a masked LM with the weights of a Hugging Face Longformer, and what became of them.

    The model has absolute positions and the pattern "sliding_window" with `attention_window / 2`
    tokens to each side. Global tokens stand at the beginning of every row; they attend, and are
    attended to, with projections of their own (`separate_global=True`). There, which tokens are
    global is an input of the model; here, a setting.

    `vocab.json` and `merges.txt`, if they are there, become the tokenizer of a preprocessor for
    rows of the full length, unless the folder's files ask for something that ours does not do; the
    report says what, and the model takes ids only.

    Differences from the source: one dropout rate everywhere, the hidden one. The rows of the
    position table that stand for padding are left out, so the first token has the first row: ours
    counts positions from the beginning of the row, theirs only tokens that are not padding, which
    is the same where padding is behind the text. A single segment is added to the position
    table, and the model takes no `segment_ids`. Rows need not be multiples of the window.

    Args:
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.
        num_global: tokens at the beginning that are global. Defaults to 1, [CLS]; with 0 the
            projections for global tokens are dropped.

    Returns:
        `(model, report)`: a `TupeMaskedLM` and a `Report`. Heads of other tasks are dropped. A
        missing masked-LM head or pooler is initialized and reported as new.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming all that is not supported, missing, left over or of another shape; if
            the output matrix is not the token embedding; if the vocabulary has another size; if
            `num_global` is not an integer >= 0.
    """
    if not is_integer(num_global) or num_global < 0:
        raise ValueError(
            "`num_global` must be an integer >= 0, tokens at the beginning of each row. "
            f"Received: num_global={num_global!r}"
        )
    folder = checked_folder(folder)
    arguments, first_row, notes = read_config(folder / "config.json", int(num_global))
    tokenizer, more = read_vocabulary(folder, arguments["vocabulary_size"], LONGFORMER)
    names, found = plain_names(read_hf_weights(folder), "longformer.")
    name_bias(names, found, BIAS, "lm_head.decoder.bias")
    check_sizes(arguments, [value.shape for value in found.values()], repr(str(folder)), slack=2)
    released = dict(found)
    dropped = left_out(found, _TIED, _DROPPED)
    dropped |= cut_rows(found, arguments, first_row)
    if not num_global:
        dropped |= {
            name: "of global tokens, of which there are none with num_global=0"
            for name in found
            if name.split(".")[-2:-1] and name.split(".")[-2] in GLOBAL_SIDES
        }
    backbone = TupeBackbone(**arguments, dtype=dtype)
    model = TupeMaskedLM(backbone, preprocessor_of(tokenizer, backbone))
    notes = (*notes, *more, *rounding(released, backbone))
    return model, fill(model, found, longformer_layout(backbone.num_layers), names, dropped, notes)
