"""BERTs of Hugging Face."""

from keras_tupe.convert.bert.fill import fill
from keras_tupe.convert.bert.layout import ABSOLUTE_TABLE, hugging_face_layout
from keras_tupe.convert.bert.wordpiece import preprocessor_of
from keras_tupe.convert.hugging_face.config import read_hf_config
from keras_tupe.convert.hugging_face.released import (
    checked_folder,
    left_out,
    plain_names,
    rounding,
)
from keras_tupe.convert.hugging_face.tokenizer import hf_tokenizer
from keras_tupe.convert.hugging_face.weights import read_hf_weights
from keras_tupe.models import TupeBackbone, TupeMaskedLM
from keras_tupe.models.presets.size_check import check_sizes

WORDS = "embeddings.word_embeddings.weight"
BIAS = "cls.predictions.bias"
_TIED = {"cls.predictions.decoder.weight": WORDS, "cls.predictions.decoder.bias": BIAS}
_DROPPED = {
    "embeddings.position_ids": "a constant, not a weight",
    "embeddings.token_type_ids": "a constant, not a weight",
    "cls.seq_relationship.": "the head of next-sentence prediction, a task that is not here",
    "classifier.": "the head of a task; fine-tune a new one",
    "qa_outputs.": "the head of a task; fine-tune a new one",
}


def from_hf_bert(folder, dtype=None):
    """Returns a masked LM with the weights of a Hugging Face BERT, and what became of them.

    The positional method follows `position_embedding_type`:

        absolute            "absolute"
        relative_key        "shaw"   with share_heads=True; Shaw et al. 2018
        relative_key_query  "qkr_4"  with share_heads=True; Huang et al. 2020, method 4

    `vocab.txt`, if it is there, becomes the tokenizer of a preprocessor for rows of the full
    length, unless the folder's files ask for something that ours does not do; the report says
    what, and the model takes ids only. transformers 5 reads relative checkpoints as absolute
    ones, without an error; KerasHub too.

    Differences from the source: one dropout rate everywhere, the hidden one; our tokenizer,
    which is TensorFlow's, cuts a few rare characters otherwise, as the report says.

    Args:
        folder: path of a local folder with `config.json` and the weights, in safetensors or torch's
            format, whole or in parts. Nothing in it is run, and torch is not needed.
        dtype: Keras dtype policy of the model. Defaults to the global one.

    Returns:
        `(model, report)`: a `TupeMaskedLM` and a `Report`. Heads of other tasks are dropped. A
        missing masked-LM head or pooler is initialized and reported as new.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming all that is not supported, missing, left over or of another shape; if
            the output matrix is not the token embedding; if the vocabulary has another size.

    Example:
        >>> import os, tempfile
        >>> from keras_tupe.convert import from_hf_bert, to_hf_bert
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, "shaw", {"share_heads": True})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_hf_bert(keras_tupe.TupeMaskedLM(backbone), os.path.join(folder, "bert"))
        ...     model, report = from_hf_bert(os.path.join(folder, "bert"))
        >>> model.backbone.position, len(report.new)
        ('shaw', 0)
    """
    folder = checked_folder(folder)
    arguments, notes = read_hf_config(folder / "config.json")
    tokenizer, more = hf_tokenizer(folder, arguments["vocabulary_size"])
    names, found = plain_names(read_hf_weights(folder), "bert.")
    if BIAS not in found and "cls.predictions.decoder.bias" in found:
        for each in (names, found):
            each[BIAS] = each.pop("cls.predictions.decoder.bias")
    check_sizes(arguments, [value.shape for value in found.values()], repr(str(folder)), slack=2)
    dropped = left_out(found, _TIED, _DROPPED)
    if arguments["position"] != "absolute" and ABSOLUTE_TABLE in found:
        dropped[ABSOLUTE_TABLE] = "not used by this model, whose positions are relative"
    backbone = TupeBackbone(**arguments, dtype=dtype)
    model = TupeMaskedLM(backbone, preprocessor_of(tokenizer, backbone))
    layout = hugging_face_layout(backbone.num_layers, backbone.position)
    notes = (*notes, *more, *rounding(found, backbone))
    return model, fill(model, found, layout, names, dropped, notes)
