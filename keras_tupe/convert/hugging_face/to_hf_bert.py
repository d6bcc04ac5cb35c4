"""Our models in the format of Hugging Face's BERT."""

import numpy as np

from keras_tupe.convert._assign import weights_by_path
from keras_tupe.convert.bert.layout import ABSOLUTE_TABLE, WORDS, hugging_face_layout
from keras_tupe.convert.hugging_face.config import POSITIONS
from keras_tupe.convert.hugging_face.padding_rows import add_segments
from keras_tupe.convert.hugging_face.trunk_config import trunk_entries
from keras_tupe.convert.hugging_face.write import (
    backbone_and_tokenizer,
    new_hf_folder,
    other_head,
    refuse,
    sharing,
    their_arrays,
    write_json,
)
from keras_tupe.convert.tokenizer_files import (
    BERT,
    BERT_IDS,
    special_ids,
    vocabulary_problems,
    write_vocabulary,
)
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeMaskedPairLM

_NAMES = {ours: theirs for theirs, ours in POSITIONS.items()}

_ARCHITECTURES = {TupeMaskedLM: "BertForMaskedLM", TupeMaskedPairLM: "BertForPreTraining"}


def to_hf_bert(model, folder):
    """Writes a model in the format of Hugging Face's BERT.

    `transformers` loads it with `BertForMaskedLM.from_pretrained(folder)` (a backbone alone with
    `BertModel`, a model of pairs with `BertForPreTraining`): absolute positions in every version,
    relative ones in 4.x only. `from_hf_bert` gives the same weights back, bit by bit.

    Differences from the source: the absolute table that BERT has and does not use beside relative
    positions is zero. A model without segments gets two segments of zero vectors, which change
    nothing. BertForMaskedLM ignores the pooler, which is written too.

    Args:
        model: a `TupeMaskedLM`, a `TupeMaskedPairLM` or a `TupeBackbone` whose method is
            "absolute", or "shaw" or "qkr_4" with `share_heads=True` and the other options at their
            defaults.
        folder: path of a folder that does not exist yet; it appears when it is complete.
            It holds `config.json`, `model.safetensors` and, for a model with a WordPiece
            tokenizer, `vocab.txt` and `tokenizer_config.json`.

    Raises:
        TypeError: if `model` is another kind of model.
        ValueError: if the folder exists, or naming all that Hugging Face's BERT cannot do.
        OSError: if the files cannot be written.

    Example:
        >>> import os, tempfile
        >>> backbone = keras_tupe.TupeBackbone(100, 1, 2, 16, 32, position="absolute")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_hf_bert(backbone, os.path.join(folder, "bert"))
        ...     sorted(os.listdir(os.path.join(folder, "bert")))
        ['config.json', 'model.safetensors']
    """
    kinds = (TupeMaskedLM, TupeMaskedPairLM, TupeBackbone)
    backbone, tokenizer = backbone_and_tokenizer(model, kinds, folder)
    problems = [*_problems(backbone), *other_head(model, "gelu")]
    refuse("BERT", [*problems, *vocabulary_problems(tokenizer, backbone, BERT)])
    with new_hf_folder(folder, _weights(model, backbone)) as partial:
        if tokenizer is not None:
            write_vocabulary(tokenizer, backbone, partial, BERT)
        write_json(partial / "config.json", _config(model, backbone, tokenizer))


def _problems(backbone):
    problems = sharing(backbone)
    options = dict(backbone.position_options)
    plain = {"share_heads": True, "share_layers": False, "k": None, "cls": "tied"}
    if backbone.position not in _NAMES:
        problems.append(f"position={backbone.position!r} is none of {list(_NAMES)}")
    elif backbone.position != "absolute":
        problems += [
            f"{name}={options[name]!r} must be {value!r}"
            for name, value in plain.items()
            if options[name] != value
        ]
        if backbone.max_sequence_length < 2:
            problems.append("max_sequence_length=1 must be at least 2 for relative positions")
    if backbone.attention_pattern != "full":
        problems.append(f"attention_pattern={backbone.attention_pattern!r} must be 'full'")
    if backbone.activation != "gelu":
        problems.append(f"activation={backbone.activation!r} must be 'gelu'")
    if not backbone.normalize_embeddings:
        problems.append("normalize_embeddings=False: BERT normalizes its embeddings")
    if backbone.normalize_first:
        problems.append("normalize_first=True: BERT is post-LN")
    if backbone.zero_padded_embeddings:
        problems.append("zero_padded_embeddings=True: BERT does not set padding to zero")
    return problems


def _weights(model, backbone):
    """Returns the weights under their names."""
    layout = hugging_face_layout(backbone.num_layers, backbone.position)
    found = their_arrays(weights_by_path(model), layout, backbone.num_heads)
    width = backbone.hidden_dim
    kind = found[WORDS].dtype
    found.setdefault(ABSOLUTE_TABLE, np.zeros((backbone.max_sequence_length, width), kind))
    add_segments(found)
    if model is backbone:
        return found
    return {name if name.startswith("cls.") else f"bert.{name}": found[name] for name in found}


def _config(model, backbone, tokenizer):
    return {
        **trunk_entries(backbone),
        "architectures": [_ARCHITECTURES.get(type(model), "BertModel")],
        "hidden_act": "gelu",
        "max_position_embeddings": backbone.max_sequence_length,
        "model_type": "bert",
        **special_ids(tokenizer, BERT_IDS),
        "position_embedding_type": _NAMES[backbone.position],
        "type_vocab_size": backbone.num_segments or 2,
    }
