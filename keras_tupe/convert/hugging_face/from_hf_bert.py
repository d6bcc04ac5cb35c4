"""BERTs of Hugging Face."""

from keras_tupe.convert.bert.fill import fill
from keras_tupe.convert.bert.layout import ABSOLUTE_TABLE, WORDS, hugging_face_layout
from keras_tupe.convert.hugging_face.config import read_hf_config
from keras_tupe.convert.hugging_face.released import (
    checked_folder,
    left_out,
    name_bias,
    plain_names,
    rounding,
)
from keras_tupe.convert.hugging_face.weights import read_hf_weights
from keras_tupe.convert.tokenizer_files import BERT, preprocessor_of, read_vocabulary
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeMaskedPairLM
from keras_tupe.models.presets.size_check import check_sizes

BIAS = "cls.predictions.bias"
_TIED = {"cls.predictions.decoder.weight": WORDS, "cls.predictions.decoder.bias": BIAS}
_DROPPED = {
    "embeddings.position_ids": "a constant, not a weight",
    "embeddings.token_type_ids": "a constant, not a weight",
    "classifier.": "the head of a task; fine-tune a new one",
    "qa_outputs.": "the head of a task; fine-tune a new one",
}


_PAIR_HEAD = {
    "cls.seq_relationship.": "the head of next-sentence prediction; pair_head=True takes it"
}


def from_hf_bert(folder, dtype=None, pair_head=False):
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
        pair_head: whether the head of next-sentence prediction is taken too, for a
            `TupeMaskedPairLM`; its class 0 is that of the second segment that follows. Defaults to
            `False`.

    Returns:
        `(model, report)`: a `TupeMaskedLM` (or `TupeMaskedPairLM`) and a `Report`. Heads of other
        tasks are dropped. A missing masked-LM head or pooler is initialized and reported as new.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: naming all that is not supported, missing, left over or of another shape; if
            the output matrix is not the token embedding; if the vocabulary has another size; if
            there is a pair head to take and `type_vocab_size` is not 2.

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
    tokenizer, more = read_vocabulary(folder, arguments["vocabulary_size"], BERT)
    names, found = plain_names(read_hf_weights(folder), "bert.")
    name_bias(names, found, BIAS, "cls.predictions.decoder.bias")
    check_sizes(arguments, [value.shape for value in found.values()], repr(str(folder)), slack=2)
    dropped = left_out(found, _TIED, _DROPPED if pair_head else {**_DROPPED, **_PAIR_HEAD})
    if arguments["position"] != "absolute" and ABSOLUTE_TABLE in found:
        dropped[ABSOLUTE_TABLE] = "not used by this model, whose positions are relative"
    backbone = TupeBackbone(**arguments, dtype=dtype)
    task = TupeMaskedPairLM if pair_head else TupeMaskedLM
    model = task(backbone, preprocessor_of(tokenizer, backbone, task.preprocessor_cls))
    layout = hugging_face_layout(backbone.num_layers, backbone.position)
    notes = (*notes, *more, *rounding(found, backbone))
    return model, fill(model, found, layout, names, dropped, notes)
